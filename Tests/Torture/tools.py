"""Tools of every kind of torture: its context, seeds, findings, and the shims."""

import collections
import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
# Processes and the RTMP publisher are those of the players suite; the console's knows how long the machine stood still.
sys.path.append(os.path.join(HERE, "..", "Players"))
sys.path.append(os.path.join(HERE, "..", "Console"))

_output = threading.Lock()
# Set when the run is interrupted: what is found while everything is being ended is nothing.
interrupted = threading.Event()


def say(text):
    with _output:
        print(text, flush=True)


class NotHere(Exception):
    """The kernel grants no right that a kind needs; the text says which. What is not installed is a finding instead."""


class Context:
    """One kind's run: binaries, a folder of its own, a seed, and what it has found. Owned by the run; findings come from any thread."""

    def __init__(self, name, options, folder, seed, rounds, is_short):
        self.name = name
        self.earshot = options.earshot
        self.load = options.load
        self.folder = folder
        self.seed = seed
        self.random = random.Random(seed)
        self.rounds = rounds
        self.is_short = is_short
        self.keeps_all = options.keep
        self.may_skip = options.may_skip
        # How many, of a kind that asks for it; None: as the form has it.
        self.rooms = options.count
        self.shims = os.path.join(options.folder, "shims")
        self.sample = os.path.join(options.folder, "sample.flv")
        self.round = 0
        self.findings = []
        # Counts for the table: the name of a thing, and how many of it were done.
        self.done = collections.Counter()
        self._lock = threading.Lock()
        self._said_at = time.monotonic()

    def find(self, text):
        """Something is wrong. The run goes on, and fails."""
        if interrupted.is_set():
            return
        with self._lock:
            self.findings.append(f"round {self.round}: {text}")
        say(f"FOUND {self.name}, seed {self.seed}, round {self.round}: {text}")

    def expect(self, condition, text):
        if not condition:
            self.find(text)
        return condition

    def count(self, what, number=1):
        with self._lock:
            self.done[what] += number

    def report(self, figures):
        """Says what was measured: the middle, the hundredth worst and the worst of each."""
        for what, values in figures.items():
            if values:
                ordered = sorted(values)
                say(f"{self.name}: {what}: p50 {ordered[len(ordered) // 2]}, p99 {ordered[len(ordered) * 99 // 100]}, max {ordered[-1]} ({len(ordered)})")

    def each_round(self):
        """Counts the rounds, and says twice a minute how far they have come. Ends early when findings pile up."""
        for self.round in range(1, self.rounds + 1):
            if len(self.findings) >= 20:
                say(f"{self.name}: ends after {self.round - 1} of {self.rounds} rounds, with {len(self.findings)} findings")
                self.round -= 1
                return
            if time.monotonic() - self._said_at > 30:
                self._said_at = time.monotonic()
                say(f"{self.name}: round {self.round} of {self.rounds}, {len(self.findings)} findings")
            yield self.round

    def path(self, *parts):
        path = os.path.join(self.folder, *parts)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return path

    def forget(self, path):
        """Deletes a folder of a round in which nothing was found."""
        if not self.keeps_all and not any(text.startswith(f"round {self.round}:") for text in self.findings):
            shutil.rmtree(path, ignore_errors=True)


def compile_shim(folder):
    """The preloaded library, built once for a run."""
    os.makedirs(folder, exist_ok=True)
    source, target = os.path.join(HERE, "shims", "disk.c"), os.path.join(folder, "disk.so")
    command = ["cc", "-O1", "-g", "-shared", "-fPIC", "-o", target, source, "-ldl", "-lpthread"]
    outcome = subprocess.run(command, capture_output=True, text=True, check=False)
    if outcome.returncode:
        raise RuntimeError(f"cc failed: {outcome.stderr[-600:]}")
    return target


def preload_clock():
    for folder in ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib"):
        path = f"{folder}/faketime/libfaketimeMT.so.1"
        if os.path.exists(path):
            return path
    raise RuntimeError("libfaketime is not installed: scripts/packages.sh test does that")


@contextlib.contextmanager
def cleanly():
    """Turns SIGTERM into an exception, so that all that was started is ended."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    yield


def eventually(seconds, condition, every=0.05):
    """Whether the condition came true in time."""
    end = time.monotonic() + seconds
    while True:
        if condition():
            return True
        if time.monotonic() > end:
            return False
        time.sleep(every)
