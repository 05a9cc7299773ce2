"""Faults planted one at a time, each of which a run of the tests must notice: python3 Tests/Planted [NAME…].
See README.md in this folder."""

import argparse
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import faults

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# More than a cold build and its tests take on two busy cores.
MOST_SECONDS = 5_400


def arguments():
    parser = argparse.ArgumentParser(prog="planted", description="Plants faults, and sees whether the run that should notice each does.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which (default: all): {', '.join(fault.name for fault in faults.ALL)}")
    parser.add_argument("--scratch", required=True, help="a folder for the copy of the tree and what is built of it")
    options = parser.parse_args()
    unknown = set(options.names) - {fault.name for fault in faults.ALL}
    if unknown:
        parser.error(f"no fault is called {', '.join(sorted(unknown))}")
    return options


def say(text):
    print(f"planted: {text}", flush=True)


def copy_tree(folder):
    """Copies the files that git knows or would add, with their times, so that only changed files are compiled again."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True).stdout
    wanted = {name for name in listed.decode().split("\0") if name and (ROOT / name).is_file()}
    for name in wanted:
        source, target = ROOT / name, folder / name
        if target.is_file() and target.read_bytes() == source.read_bytes():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)
    for folder_name in ("Sources", "Tests"):
        for path in (folder / folder_name).rglob("*"):
            if path.is_file() and str(path.relative_to(folder)) not in wanted and "__pycache__" not in path.parts:
                path.unlink()


def run(command, folder, scratch, log):
    """Exit code and output; the command's processes end with it."""
    environment = {**os.environ, "EARSHOT_SCRATCH": str(scratch)}
    with open(log, "w+", encoding="utf-8", errors="replace") as output:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            code = process.wait(timeout=MOST_SECONDS)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
        output.seek(0)
        return code, output.read()


def is_noticed(fault, folder, scratch):
    """Whether the fault's run is well without it, and tells of it with it."""
    problem = fault.misplaced(folder)
    if problem:
        say(f"{fault.name}: {problem}: correct Tests/Planted/faults.py")
        return False
    log = scratch / f"{fault.name}.log"
    start = time.monotonic()
    say(f"{fault.name}: {' '.join(fault.command)}, first without it")
    code, _ = run(fault.command, folder, scratch, log)
    if code != 0:
        say(f"{fault.name}: the run fails without the fault, exit code {code}; see {log}")
        return False
    kept = fault.plant(folder)
    try:
        code, output = run(fault.command, folder, scratch, log)
    finally:
        fault.take_back(folder, kept)
    told = next((line.strip() for line in output.splitlines() if fault.told in line), None)
    if code in (0, None) or told is None:
        say(f"{fault.name}: NOT NOTICED ({fault.what}): exit code {code}, no line with {fault.told!r}; see {log}")
        return False
    say(f"{fault.name}: noticed after {time.monotonic() - start:.0f} s in all ({fault.what}): {told[:200]}")
    return True


def main():
    options = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    scratch = pathlib.Path(options.scratch).resolve()
    folder = scratch / "copy"
    folder.mkdir(parents=True, exist_ok=True)
    copy_tree(folder)
    chosen = [fault for fault in faults.ALL if not options.names or fault.name in options.names]
    missed = [fault.name for fault in chosen if not is_noticed(fault, folder, scratch)]
    say(f"{len(chosen) - len(missed)} of {len(chosen)} noticed" + (f"; not: {', '.join(missed)}" if missed else ""))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
