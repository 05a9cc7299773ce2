"""progress.py TASKS: copies a build's output, but in place of its thousands of names shows the share that is done.

TASKS is how many tasks a build from nothing has, about: SwiftPM finds them on the way, so its own count rises. 0: little is to be built, and the share is
not known. What is no task, such as a warning or an error, is passed on."""

import re
import shutil
import sys
import time

TASK = re.compile(r"^\[(\d+)/(\d+)\] (.*)")
# Where nobody sees a line that changes.
EVERY_SECONDS = 30


def main():
    expected = int(sys.argv[1]) if len(sys.argv) > 1 and sys.argv[1].isdecimal() else 0
    is_terminal = sys.stderr.isatty()
    began = said = time.monotonic()
    for line in sys.stdin:
        task = TASK.match(line)
        if not task:
            print(("\r\033[K" if is_terminal else "") + line, end="", file=sys.stderr, flush=True)
            continue
        now = time.monotonic()
        if not is_terminal and now - said < EVERY_SECONDS:
            continue
        said = now
        done, found = int(task.group(1)), int(task.group(2))
        share = f"{100 * done // max(found, expected, 1)} % built" if expected else f"{done} of {found} built"
        text = f"earshot: {share}, {(now - began) / 60:.0f} min {(now - began) % 60:02.0f} s"
        if is_terminal:
            print(f"\r\033[K{text}: {task.group(3)}"[: shutil.get_terminal_size().columns + 3], end="", file=sys.stderr, flush=True)
        else:
            print(text, file=sys.stderr, flush=True)
    if is_terminal:
        print("\r\033[K", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
