"""Histories of the HTTP API and whether they are right: python3 Tests/Histories --earshot BINARY [--ci] [--operations N --kills K --seed S].
See README.md in this folder."""

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import checks  # noqa: E402
import faults  # noqa: E402
import history  # noqa: E402
from run import ROOMS, record  # noqa: E402

MOST_SHOWN = 5


def arguments():
    parser = argparse.ArgumentParser(prog="histories", description="Records what clients of the HTTP API are told, and checks it.")
    parser.add_argument("--earshot", default=os.environ.get("EARSHOT_BIN"), help="the binary to test (or EARSHOT_BIN)")
    parser.add_argument("--ci", action="store_true", help="the checker's own tests, 2,000 operations with 3 kills, and planted faults")
    parser.add_argument("--operations", type=int, default=100_000, help="how many calls the clients make (default 100000)")
    parser.add_argument("--kills", type=int, default=40, help="how often the server is killed and started again (default 40)")
    parser.add_argument("--seed", type=int, help="of the clients' choices and the moments of the kills (default: random, and printed)")
    parser.add_argument("--keep", metavar="FILE", help="write the history there")
    parser.add_argument("--check", metavar="FILE", help="check a history that was kept, and record none")
    parser.add_argument("--plant", choices=sorted(faults.FAULTS), help="put a fault between clients and server, which the check must find")
    options = parser.parse_args()
    if options.operations < 1 or options.kills < 0:
        parser.error(f"--operations and --kills must not be negative, not {options.operations} and {options.kills}")
    return options


def say(text):
    print(text, flush=True)


def show(violations):
    for violation in violations[:MOST_SHOWN]:
        say(f"\n{violation}")
    if len(violations) > MOST_SHOWN:
        say(f"\nand {len(violations) - MOST_SHOWN} more")


def recorded(options, operations, kills, seed, fault=None, rooms=ROOMS):
    """A history, made on a server of its own."""
    folder = tempfile.mkdtemp(prefix="earshot-histories-")
    try:
        entries = record(os.path.abspath(options.earshot), folder, operations, kills, seed, fault, rooms)
    except BaseException:
        say(f"histories: the server's log is in {folder}")
        raise
    shutil.rmtree(folder, ignore_errors=True)
    return entries


def judge(entries, seed):
    """Checks a history and says what it found. True: it is right."""
    began = time.monotonic()
    violations = checks.check(entries)
    show(violations)
    verdict = f"{len(violations)} violations" if violations else "right"
    say(f"histories: seed {seed}: {checks.figures(entries)}: {verdict} (checked in {time.monotonic() - began:.1f} s)")
    return not violations


def one(options, operations, kills, seed):
    say(f"histories: seed {seed}, {operations} operations, {kills} kills")
    began = time.monotonic()
    fault = faults.FAULTS[options.plant]() if options.plant else None
    entries = recorded(options, operations, kills, seed, fault)
    if checks.is_skewed(entries):
        say("histories: the machine's clock was set meanwhile, by which deadlines cannot be judged: recording another one")
        entries = recorded(options, operations, kills, seed, fault)
    say(f"histories: recorded in {time.monotonic() - began:.1f} s")
    if options.keep:
        history.write(entries, options.keep)
    is_right = judge(entries, seed)
    if not is_right and not options.keep and not options.plant:
        path = os.path.join(tempfile.gettempdir(), f"earshot-history-{seed}.jsonl")
        history.write(entries, path)
        say(f"histories: kept in {path}")
    return is_right


def planted(options, seed):
    """Whether the check finds faults that were put between clients and server."""
    missed = []
    for name in faults.IN_CI:
        for attempt in range(3):
            fault = faults.FAULTS[name]()
            entries = recorded(options, 300, 0, f"{seed}/{attempt}", fault, ROOMS[:2])
            # It waits for certain calls, which need not come.
            if fault.was_put:
                break
        violations = checks.check(entries) if fault.was_put else []
        say(f"histories: planted {name}: {f'{violations[0].where}: {violations[0].text}' if violations else 'NOT FOUND'}")
        if not violations:
            missed.append(name)
    return not missed


def own_tests():
    suite = unittest.defaultTestLoader.discover(os.path.dirname(os.path.abspath(__file__)))
    return unittest.TextTestRunner(stream=sys.stdout, verbosity=1).run(suite).wasSuccessful()


def main():
    options = arguments()
    # Exits normally, so that everything that was started is ended.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if options.check:
        try:
            entries = history.read(options.check)
        except (OSError, ValueError) as error:
            say(f"histories: {error}")
            return 2
        return 0 if judge(entries, entries[0].get("seed")) else 1
    if not options.earshot or not os.access(options.earshot, os.X_OK):
        say(f"histories: --earshot must name the built binary, not {options.earshot!r}")
        return 2
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1_000_000)
    if options.ci:
        return 0 if own_tests() and one(options, 2_000, 3, seed) and planted(options, seed) else 1
    return 0 if one(options, options.operations, options.kills, seed) else 1


if __name__ == "__main__":
    sys.exit(main())
