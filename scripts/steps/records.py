"""What each step of `make verify` last came to, kept beside the builds under a hash of what can change its result."""

import datetime
import glob
import hashlib
import os
import subprocess

from table import ROOT

FOLDER = os.path.join(os.path.dirname(os.environ.get("SCRATCH") or ".build-logs/x"), "verified")
# Not sources: builds, caches, what a server left.
SKIPPED = {"__pycache__", ".build", "results", "node_modules"}


def files(place):
    path = ROOT / place
    if path.is_file():
        yield path
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if name not in SKIPPED and not name.startswith(".build"))
        for name in sorted(names):
            yield ROOT / folder / name


def key(step):
    """The hash of all that the step reads."""
    total = hashlib.sha256(repr(step.command).encode())
    for place in step.reads:
        for path in files(place):
            total.update(f"{path.relative_to(ROOT)}\0".encode())
            total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()[:16]


def place(step, digest):
    return os.path.join(FOLDER, f"{step.name.replace(' ', '-')}-{digest}")


def note(step, digest, is_good, seconds):
    """Keeps the result of a step that says what it reads. `digest` is its key when it began."""
    if step.reads:
        os.makedirs(FOLDER, exist_ok=True)
        when = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
        with open(place(step, digest), "w", encoding="utf-8") as file:
            file.write(f"{'passed' if is_good else 'failed'} after {seconds:.0f} s, {when}\n")


def result(step):
    """What is kept for this tree, or None."""
    try:
        with open(place(step, key(step)), encoding="utf-8") as file:
            return file.read().strip()
    except OSError:
        return None


def has_passed(step):
    return (result(step) or "").startswith("passed")


def expected_seconds(step):
    """How long it will take here, about."""
    is_built = glob.glob(os.path.join(os.path.dirname(FOLDER), f"{step.builds}-*"))
    return step.seconds + (0 if is_built else step.cold)


def git(*words):
    printed = subprocess.run(("git", *words), cwd=ROOT, capture_output=True, text=True, check=False)
    return printed.stdout if printed.returncode == 0 else ""


def in_turn(steps):
    """First the steps that read what the newest day's commits touched; then the others, beginning at another one with each commit."""
    newest = git("log", "-1", "--format=%ct").strip()
    touched = git("log", f"--since={int(newest) - 86_400}", "--name-only", "--format=").split() if newest else []

    def reads(step, path):
        return any(path == place or path.startswith(f"{place}/") for place in step.reads)

    # How much of it: what reads all of Sources is nearly always touched.
    share = {step.name: sum(reads(step, path) for path in touched) / len(step.reads or "x") for step in steps}
    start = int(git("rev-parse", "HEAD").strip() or "0", 16) % len(steps)
    turned = steps[start:] + steps[:start]
    return sorted(turned, key=lambda step: share[step.name] == 0)
