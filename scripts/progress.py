"""progress.py TASKS: copies a build's output, but in place of its thousands of names shows the share that is done.

TASKS is how many tasks a build from nothing has, about: SwiftPM finds them on the way, so its own count rises. 0: little is to be built, and the share is
not known. Warnings and errors are passed on."""

import re
import shutil
import sys
import time

TASK = re.compile(r"^\[(\d+)/(\d+)\] (.*)")
# SwiftPM's words about other packages' sources.
SOURCES = re.compile(r"^(Fetching|Fetched|Updating|Updated|Comput(ing|ed)|Creating working copy|Working copy|Planning|Building for|\[\d+/\d+\] (Fetching|Updating))")
# Of packages from elsewhere: a file that their manifest does not name, and its path.
UNNAMED = re.compile(r"^warning: '[\w.-]+': found \d+ file\(s\) which are unhandled|^    /.*/checkouts/")
# Where nobody sees a line that changes.
EVERY_SECONDS = 30


class Progress:
    def __init__(self, expected):
        self.expected = expected
        self.is_terminal = sys.stderr.isatty()
        self.began = time.monotonic()
        self.said = self.began - EVERY_SECONDS

    def say(self, text, name=""):
        """At a terminal the same line again and again; elsewhere now and then a line."""
        now = time.monotonic()
        seconds = int(now - self.began)
        text = f"earshot: {text}, {seconds // 60}:{seconds % 60:02}"
        if self.is_terminal:
            print(f"\r\033[K{(text + name)[: shutil.get_terminal_size().columns - 1]}", end="", file=sys.stderr, flush=True)
        elif now - self.said >= EVERY_SECONDS:
            self.said = now
            print(text, file=sys.stderr, flush=True)

    def read(self, line):
        task = TASK.match(line)
        if SOURCES.match(line):
            self.say("reading the packages' sources")
        elif task:
            done, found = int(task.group(1)), int(task.group(2))
            share = f"{100 * done // max(found, self.expected)} % compiled" if self.expected else f"{done} of {found} tasks"
            self.say(share, f": {task.group(3)}")
        elif not UNNAMED.match(line):
            print(("\r\033[K" if self.is_terminal else "") + line, end="", file=sys.stderr, flush=True)


def main():
    progress = Progress(int(sys.argv[1]) if len(sys.argv) > 1 and sys.argv[1].isdecimal() else 0)
    for line in sys.stdin:
        progress.read(line)
    if progress.is_terminal:
        print("\r\033[K", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
