"""Runs steps: several beside one another where the machine has room, each one's output kept together."""

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass

import records

# Steps may ask for a little more than there is: they also wait.
ROOM = (os.cpu_count() or 1) * 1.3
LOGS = os.path.join(os.environ.get("SCRATCH") or ".build-logs", "logs")
FAILURE = re.compile(r"^✘ Test .* recorded an issue|^FAILED |^.*error: ")
# The last words of a suite's run.
CLOSING = re.compile(r"Test run with \d+ tests?|^\w[\w' ]*: .*(passed|failed)|^\d+ passed")
IS_TERMINAL = sys.stderr.isatty()
CLEAR = "\r\033[K"
# What is said of a step that still runs, where nobody sees a line that changes.
STILL_SECONDS = 60


def say(text):
    # A terminal's last line tells what runs.
    print(f"{CLEAR if IS_TERMINAL else ''}earshot: {text}", file=sys.stderr, flush=True)


@dataclass
class Run:
    step: object
    process: subprocess.Popen
    log: str
    began: float
    said: float
    # What it reads, as a hash.
    digest: str


class Runner:
    def __init__(self, show=False):
        # Whether output is passed on as it comes.
        self.show = show
        self.running = []
        self.passed, self.failed = 0, []
        self.began = time.monotonic()
        os.makedirs(LOGS, exist_ok=True)

    def begin(self, step):
        log = os.path.join(LOGS, step.name.replace(" ", "-") + ".log")
        now = time.monotonic()
        say(f"{step.name}: {step.about}")
        with open(log, "wb") as file:
            process = subprocess.Popen(
                step.command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE if self.show else file,
                stderr=subprocess.STDOUT, start_new_session=True)
        run = Run(step, process, log, now, now, records.key(step))
        if self.show:
            threading.Thread(target=self.pass_on, args=(run,), daemon=True).start()
        self.running.append(run)

    @staticmethod
    def pass_on(run):
        with open(run.log, "wb") as file:
            for line in run.process.stdout:
                file.write(line)
                sys.stdout.buffer.write(line)
                sys.stdout.buffer.flush()

    def end(self, run):
        """Tells how a step ended. Returns whether it passed."""
        self.running.remove(run)
        seconds = time.monotonic() - run.began
        with open(run.log, encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
        code = run.process.returncode
        if not code and run.step.only is not None and not any(re.search(r"Test run with [1-9]", line) for line in lines):
            lines.append("no test ran")
            code = 1
        records.note(run.step, run.digest, code == 0, seconds)
        if code == 0:
            self.passed += 1
            say(f"{run.step.name}: passed in {seconds:.0f} s")
            for line in lines[-8:]:
                if CLOSING.search(line) and not self.show:
                    print(line[:300], flush=True)
            return True
        how = f"ended by signal {-code}" if code < 0 else f"exit code {code}"
        say(f"{run.step.name}: FAILED after {seconds:.0f} s ({how}); its whole output is in {run.log}")
        if os.environ.get("CI") and not self.show:
            # Nobody can look into the file there.
            print("\n".join(lines), flush=True)
        self.failed.append((run.step.name, told(lines)))
        return False

    def wait(self):
        """Waits until a step has ended, and returns it."""
        while True:
            for run in self.running:
                if run.process.poll() is not None:
                    return run
            now = time.monotonic()
            if IS_TERMINAL and not self.show:
                words = ", ".join(f"{run.step.name} {now - run.began:.0f} s" for run in self.running)
                print(CLEAR + words[: shutil.get_terminal_size().columns - 1], end="", file=sys.stderr, flush=True)
            else:
                for run in self.running:
                    if now - run.said >= STILL_SECONDS:
                        run.said = now
                        say(f"{run.step.name}: {last_words(run.log)} ({now - run.began:.0f} s)")
            time.sleep(0.2)

    def stop(self):
        """Ends what still runs, and all that it started."""
        for kind, patience in ((signal.SIGTERM, 15), (signal.SIGKILL, 5)):
            for run in self.running:
                try:
                    os.killpg(run.process.pid, kind)
                except ProcessLookupError:
                    pass
            until = time.monotonic() + patience
            while time.monotonic() < until and any(run.process.poll() is None for run in self.running):
                time.sleep(0.1)

    def finish(self):
        """The run's last word; its exit code."""
        seconds = time.monotonic() - self.began
        for name, lines in self.failed:
            say(f"{name} failed:")
            print("\n".join(f"  {line[:1000]}" for line in lines), file=sys.stderr, flush=True)
        print(f"steps: {self.passed} passed, {len(self.failed)} failed", flush=True)
        if self.failed:
            say(f"failed: {', '.join(name for name, _ in self.failed)} (after {seconds:.0f} s in all)")
            return 1
        say(f"all passed in {seconds:.0f} s")
        return 0


def told(lines):
    """The lines that say what was expected, without the thousands around them; else the last ones."""
    found = []
    for index, line in enumerate(lines):
        if FAILURE.search(line):
            found += lines[index:index + 4]
    return found[-80:] or lines[-20:]


def last_words(path):
    with open(path, "rb") as file:
        file.seek(max(0, os.path.getsize(path) - 2000))
        lines = file.read().decode("utf-8", "replace").replace("\r", "\n").split("\n")
    return next((line.strip().removeprefix("earshot: ")[:120] for line in reversed(lines) if line.strip()), "runs")


def guarded(body, runner):
    """Calls `body` with the runner, and leaves nothing running however it ends. Returns the exit code."""

    def interrupted(number, _):
        raise KeyboardInterrupt(number)

    signal.signal(signal.SIGTERM, interrupted)
    signal.signal(signal.SIGHUP, interrupted)
    try:
        return body(runner)
    except KeyboardInterrupt:
        say("stopping")
        return 130
    finally:
        runner.stop()


def run_all(steps, show=False):
    """Runs the steps as early as they may: those that wait beside those that compute, in the order of the list. What needs a step that failed is not run."""
    names = {step.name for step in steps}

    def body(runner):
        waiting, passed = list(steps), set()
        while waiting or runner.running:
            ready = [step for step in waiting if passed.issuperset(names.intersection(step.after))]
            used = sum(run.step.load for run in runner.running)
            fitting = next((step for step in ready if not runner.running or used + step.load <= ROOM), None)
            if fitting:
                waiting.remove(fitting)
                runner.begin(fitting)
                continue
            if not runner.running:
                say(f"not run, as they need a step that failed: {', '.join(step.name for step in waiting)}")
                break
            ended = runner.wait()
            if runner.end(ended):
                passed.add(ended.step.name)
        return runner.finish()

    return guarded(body, Runner(show))


def run_in_turn(first, steps, seconds=None):
    """Runs `first`, which all others need, then one step after another, whether or not they fail. With `seconds`, only those that fit into them, on a machine
    that takes as much longer as it did for the steps before."""

    def body(runner):
        left_out, expected, spent = [], 1, 1
        for step in [*first, *steps]:
            its = records.expected_seconds(step)
            began = time.monotonic()
            if seconds is not None and step not in first and began - runner.began + its * max(1, spent / expected) > seconds:
                left_out.append(step)
                continue
            runner.begin(step)
            has_passed = runner.end(runner.wait())
            if step in first and not has_passed:
                break
            if step not in first:
                expected, spent = expected + its, spent + time.monotonic() - began
        if left_out:
            say(f"no time is left for {', '.join(step.name for step in left_out)}")
        return runner.finish()

    return guarded(body, Runner())
