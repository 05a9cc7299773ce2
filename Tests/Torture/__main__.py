"""Torture of the real server: python3 Tests/Torture --earshot BINARY [--ci] [--kind KIND…] [--rounds N] [--seed N]. See README.md in this folder."""

import argparse
import os
import shutil
import sys
import tempfile
import threading
import time
import traceback
import zlib

import kinds
from tools import Context, NotHere, cleanly, compile_shim, interrupted, say

# Beside each other in the short form: most of each is waiting.
CI_LANES = 3


def arguments():
    parser = argparse.ArgumentParser(prog="torture", description="What users would otherwise find.")
    parser.add_argument("--earshot", default=os.environ.get("EARSHOT_BIN"), help="the binary to test (or EARSHOT_BIN)")
    parser.add_argument("--load", default=os.environ.get("LOAD_BIN"), help="earshot-load (or LOAD_BIN); default: beside --earshot")
    parser.add_argument("--ci", action="store_true", help="the short form, a minute or two")
    parser.add_argument("--kind", nargs="+", choices=[name for name, *_ in kinds.PLAN], help="only these kinds")
    parser.add_argument("--rounds", type=int, help="so many rounds of each kind")
    parser.add_argument("--count", type=int, help="so many rooms, of the kind cluster")
    parser.add_argument("--share", type=float, default=1, help="a part of the long form's rounds, such as 0.1")
    parser.add_argument("--seed", type=int, help="repeats a run's choices (default: another one each time)")
    parser.add_argument("--folder", help="where data directories and logs go (default: a new folder for temporary files)")
    parser.add_argument("--lanes", type=int, help=f"so many kinds at a time (default: 1, in the short form {CI_LANES})")
    parser.add_argument("--keep", action="store_true", help="keep all data directories and logs, also where nothing was found")
    parser.add_argument("--may-skip", action="store_true", help="a kind that needs a right which the kernel does not grant fails nothing")
    options = parser.parse_args()
    options.lanes = max(1, options.lanes or (CI_LANES if options.ci else 1))
    return options


class Outcome:
    """The result of one kind: a line of the table."""

    def __init__(self, context):
        self.context = context
        self.skipped = None
        self.began = self.ended = None

    def run(self):
        self.began = time.monotonic()
        context = self.context
        try:
            kinds.load(context.name).run(context)
        except NotHere as why:
            self.skipped = str(why)
        except Exception:
            # A kind that breaks has found something, if only in itself.
            context.find(traceback.format_exc(limit=-6).strip())
        self.ended = time.monotonic()

    def line(self):
        context = self.context
        seconds = (self.ended or time.monotonic()) - self.began if self.began else 0
        done = ", ".join(f"{count} {what}" for what, count in sorted(context.done.items()))
        word = f"skipped: {self.skipped}" if self.skipped else f"{len(context.findings)} findings"
        return f"{context.name:12} {context.round:6} {seconds:8.0f} {context.seed:12}  {word:14}  {done}"


def plan(options, folder):
    for name, short, long in kinds.PLAN:
        if options.kind and name not in options.kind:
            continue
        rounds = options.rounds or (short if options.ci else max(1, round(long * options.share)))
        # Each kind its own choices, whichever kinds run beside it; one kind alone gets the seed as it was printed.
        seed = options.seed if options.kind and len(options.kind) == 1 else zlib.crc32(f"{options.seed} {name}".encode())
        yield Context(name, options, os.path.join(folder, name), seed, rounds, options.ci)


def run_all(outcomes, lanes):
    """So many kinds at a time."""
    left = list(outcomes)
    lock = threading.Lock()

    def work():
        while True:
            with lock:
                if not left:
                    return
                outcome = left.pop(0)
            outcome.run()
            say(outcome.line())

    threads = [threading.Thread(target=work, daemon=True) for _ in range(lanes)]
    for thread in threads:
        thread.start()
    for thread in threads:
        # Joined by pieces, so that ^C comes through.
        while thread.is_alive():
            thread.join(0.2)


def main():
    options = arguments()
    if not options.earshot or not os.access(options.earshot, os.X_OK):
        say(f"torture: --earshot must name the built binary, not {options.earshot!r}")
        return 2
    options.earshot = os.path.abspath(options.earshot)
    beside = os.path.join(os.path.dirname(options.earshot), "earshot-load")
    options.load = os.path.abspath(options.load) if options.load else beside if os.access(beside, os.X_OK) else None
    if options.seed is None:
        options.seed = int.from_bytes(os.urandom(4), "big")
    options.folder_given = options.folder is not None
    folder = options.folder = os.path.abspath(options.folder or tempfile.mkdtemp(prefix="earshot-torture-"))
    os.makedirs(folder, exist_ok=True)
    if os.listdir(folder):
        say(f"torture: --folder must name a new or empty folder, and {folder} has something in it")
        return 2
    say(f"torture: seed {options.seed}, in {folder}")
    began = time.monotonic()
    outcomes = []
    with cleanly():
        from media import make_sample

        compile_shim(os.path.join(folder, "shims"))
        make_sample(os.path.join(folder, "sample.flv"))
        outcomes = [Outcome(context) for context in plan(options, folder)]
        try:
            run_all([outcome for outcome in outcomes if outcome.context.name != kinds.ALONE], options.lanes)
            run_all([outcome for outcome in outcomes if outcome.context.name == kinds.ALONE], 1)
        except (KeyboardInterrupt, SystemExit) as why:
            # Kinds that still run end with this process.
            interrupted.set()
            report(options, outcomes, folder, time.monotonic() - began, is_whole=False)
            say(f"torture: interrupted; data directories and logs are in {folder}")
            return 130 if isinstance(why, KeyboardInterrupt) else 143
    return report(options, outcomes, folder, time.monotonic() - began)


def report(options, outcomes, folder, seconds, is_whole=True):
    say(f"\n{'kind':12} {'rounds':>6} {'seconds':>8} {'seed':>12}  findings")
    for outcome in outcomes:
        say(outcome.line())
    count = sum(len(outcome.context.findings) for outcome in outcomes)
    skipped = sum(outcome.skipped is not None for outcome in outcomes)
    for outcome in outcomes:
        context = outcome.context
        if context.findings:
            say(f"\n{context.name}: repeat with --kind {context.name} --seed {context.seed} --rounds {context.round}{' --ci' if options.ci else ''}")
            for text in context.findings:
                say(f"  {text}")
    if is_whole and not count and not options.keep and not options.folder_given:
        shutil.rmtree(folder, ignore_errors=True)
    elif is_whole and count:
        say(f"\ntorture: data directories and logs are in {folder}")
    say(f"torture: {count} findings, {skipped} kinds skipped, {seconds:.0f} s")
    return 1 if count or (skipped and not options.may_skip) else 0


if __name__ == "__main__":
    sys.exit(main())
