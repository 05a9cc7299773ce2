"""Which step runs each test, so that none runs twice and none is forgotten."""

import re
import subprocess
import sys

import records
import table

# Tests that stood elsewhere once: former name, tab, names of the tests that prove the same now, separated by commas.
SUCCESSORS = table.ROOT / "Tests" / "successors.tsv"


def tests():
    """The names of all tests in the debug build, as "RelayTests.JoinTests/comesLate()"."""
    command = (table.TESTS, "--testing-library", "swift-testing", "--list-tests")
    printed = subprocess.run(command, capture_output=True, text=True, check=False)
    names = sorted({line.strip() for line in printed.stdout.splitlines() if re.match(r"\w+\.\w", line)})
    if printed.returncode or not names:
        sys.exit(f"steps: {table.TESTS} lists no tests (exit code {printed.returncode}): make test builds it; {printed.stderr.strip()[:500]}")
    return names


def runs(step, test):
    return (not step.only or any(re.search(word, test) for word in step.only)) and not any(re.search(word, test) for word in step.without)


def faults(names):
    """What is wrong: a test that no step runs, or two; a successor that is not there."""
    steps = [step for step in table.ALL if step.only is not None and not step.is_again]
    for name in names:
        by = [step.name for step in steps if runs(step, name)]
        if len(by) != 1:
            yield f"{name} is run by {' and '.join(by) or 'no step'}: it must be one (scripts/steps/table.py)"
    known = set(names)
    for line in SUCCESSORS.read_text(encoding="utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        former, _, successors = line.partition("\t")
        if former in known:
            yield f"{SUCCESSORS.name}: {former} is still a test"
        for successor in successors.split(","):
            if successor.strip() not in known:
                yield f"{SUCCESSORS.name}: {former} has the successor {successor.strip() or '(none)'}, which is no test"


def check():
    found = list(faults(tests()))
    for fault in found:
        print(f"FAILED {fault}")
    return 1 if found else 0


def show(with_tests):
    names = tests() if with_tests else []
    for command, steps in (("make check", table.CHECK), ("make test, after these", table.TEST), ("make verify", table.VERIFY)):
        print(f"{command}:")
        for step in steps:
            known = records.result(step) if step in table.VERIFY else None
            cold = f" (+{step.cold})" if step.cold else ""
            print(f"  {step.name:20} {f'{step.seconds} s{cold}':>14}  {step.about}{f'; {known}' if known else ''}")
            if step.only is not None:
                for name in names:
                    if runs(step, name):
                        print(f"      {name}")
    return 0
