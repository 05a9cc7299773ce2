"""Real players against a real server: python3 Tests/Players --earshot BINARY [--ci] [--only WORD…]. See README.md in this folder."""

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time

import plan
from players import PLAYERS
from run import Suite, beside_nginx
from tools import Tools


def arguments():
    parser = argparse.ArgumentParser(prog="players", description="Real players against a real server.")
    parser.add_argument("--earshot", default=os.environ.get("EARSHOT_BIN"), help="the binary to test (or EARSHOT_BIN)")
    parser.add_argument("--ci", action="store_true", help="the 31 cases of `make test` and `make verify`")
    parser.add_argument("--only", nargs="+", metavar="WORD", help="only cases whose names hold all of these, e.g. vlc return")
    parser.add_argument("--cases", metavar="NAME,…", default="", help="only these cases, by their whole names")
    parser.add_argument("--without", metavar="NAME,…", default="", help="all but these cases")
    parser.add_argument("--list", action="store_true", help="name the cases and end")
    parser.add_argument("--keep", action="store_true", help="keep the logs and pictures of what passed, too")
    parser.add_argument("--folder", help="where logs and pictures go (default: a new folder for temporary files)")
    parser.add_argument("--minutes", type=float, default=100, help="what has not been run by then fails (default 100)")
    return parser.parse_args()


def row(outcome):
    """One line of the table."""

    def seconds(value):
        return f"{value:5.1f} s" if value is not None else "      -"

    if outcome.skipped:
        return f"{'skip' if PLAYERS[outcome.case.player].may_lack else 'FAIL'}  {outcome.case.name:38} not run: {outcome.skipped}"
    is_reference = outcome.case.server != "earshot"
    word = "ref " if is_reference else "FAIL" if outcome.wrong else "ok  "
    rate = f"{outcome.rate:3.0f}/s" if outcome.rate is not None else "    -"
    tracks = ", ".join(outcome.tracks or ["-"])
    lines = [f"{word}  {outcome.case.name:38} {seconds(outcome.first)} {seconds(outcome.age)} {rate}  {tracks}"]
    # The other server is not judged.
    lines += [f"        {complaint}" for complaint in outcome.wrong if not is_reference]
    lines += [f"        - {note}" for note in outcome.notes]
    lines += [f"        see {outcome.folder}"] if outcome.folder and not is_reference else []
    return "\n".join(lines)


def say(text):
    print(text, flush=True)


def main():
    options = arguments()
    cases = plan.ci_plan() if options.ci else plan.full_plan()
    if options.only:
        cases = [case for case in cases if all(word in case.name for word in options.only)]
    named, without = (set(filter(None, text.split(","))) for text in (options.cases, options.without))
    unknown = (named | without) - {case.name for case in cases}
    if unknown:
        say(f"players: no case is called {', '.join(sorted(unknown))}; --list names all")
        return 2
    cases = [case for case in cases if case.name not in without and (not named or case.name in named)]
    if options.list:
        for case in cases:
            say(case.name)
        return 0
    if not cases:
        say("players: no case is left; --list names all")
        return 2
    if not options.earshot or not os.access(options.earshot, os.X_OK):
        say(f"players: --earshot must name the built binary, not {options.earshot!r}")
        return 2
    # Exits normally, so that everything that was started is ended.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    folder = options.folder or tempfile.mkdtemp(prefix="earshot-players-")
    os.makedirs(folder, exist_ok=True)
    # VLC and Chromium are other users where the suite is root.
    os.chmod(folder, 0o755)
    began = time.monotonic()
    outcomes = []
    say(f"      {'player/protocol/stream/scene':38}   first     age  rate  tracks")
    with Suite(os.path.abspath(options.earshot), folder, Tools(), options.keep) as suite:
        for case in cases:
            if time.monotonic() - began > options.minutes * 60:
                say(f"players: {len(cases) - len(outcomes)} cases were not run within {options.minutes:g} minutes")
                break
            outcomes.append(suite.run(case))
            say(row(outcomes[-1]))
    own = [outcome for outcome in outcomes if outcome.case.server == "earshot"]
    beside = beside_nginx(outcomes)
    if beside:
        say("\nBeside nginx-rtmp, over RTMP")
        for is_well, text in beside:
            say(f"{'ok  ' if is_well else 'FAIL'}  {text}")
    if not options.ci and not options.only:
        say("\nNot applicable")
        for what, why in plan.NOT_APPLICABLE:
            say(f"      {what}: {why}")
    # A case's programs are installed by scripts/packages.sh players. Without them nothing was shown, which is no success.
    skipped = [outcome for outcome in outcomes if outcome.skipped and not PLAYERS[outcome.case.player].may_lack]
    failed = [outcome for outcome in own if outcome.wrong]
    if failed or skipped:
        say("\nFailed")
        for outcome in failed + skipped:
            say(row(outcome))
    worse = sum(not is_well for is_well, _ in beside)
    bad = len(failed) + worse + len(cases) - len(outcomes) + len(skipped)
    passed = sum(not outcome.wrong and not outcome.skipped for outcome in own) + len(beside) - worse
    if not bad and not options.keep and not options.folder:
        shutil.rmtree(folder, ignore_errors=True)
    elif bad:
        say(f"\nplayers: logs and pictures are in {folder}")
    also = f", {len(skipped)} of them not run" if skipped else ""
    say(f"players: {passed} passed, {bad} failed{also} in {time.monotonic() - began:.0f} s")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
