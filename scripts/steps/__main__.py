"""make check                              what to run while working: no server
make test [ARGS='--filter NAME …']      all that the README promises; with flags of `swift test` the tests that they choose
make verify [ARGS='STEP…']              what takes longer, or these steps of it; goes on after a failure
make verify ARGS=missing                the steps whose folders have changed since they last passed
make verify ARGS='within SECONDS'       as many steps as fit: first those that the newest day's commits touched, then the others in turn
make steps [ARGS=tests]                 every step, with `tests` every test in it, too
make steps ARGS=check                   whether each test of the debug build runs in one step, and has its successor where it was moved

Called by test.sh, which holds the lock of the debug build's folder, $SCRATCH."""

import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import records  # noqa: E402
import runner  # noqa: E402
import table  # noqa: E402
import inventory  # noqa: E402


def usage(complaint=None):
    if complaint:
        print(f"earshot: {complaint}", file=sys.stderr)
    print(__doc__.rsplit("\n\n", 1)[0], file=sys.stderr)
    sys.exit(2)


def chosen(words):
    """The steps of `verify` that these words name, in the order in which they run, and the seconds that they may take, if bounded."""
    known = {step.name: step for step in table.VERIFY}
    if not words:
        return table.VERIFY, None
    if words == ["missing"]:
        return [step for step in table.VERIFY if not records.has_passed(step)], None
    if words[0] == "within":
        if len(words) != 2 or not words[1].isdecimal():
            usage(f"`within` takes a whole number of seconds, not {' '.join(words[1:]) or 'nothing'}")
        return records.in_turn(table.VERIFY), int(words[1])
    unknown = [word for word in words if word not in known]
    if unknown:
        usage(f"no step is called {', '.join(unknown)}; there are {', '.join(known)}, and `missing`, `within SECONDS`")
    return [known[word] for word in dict.fromkeys(words)], None


def main():
    if len(sys.argv) < 2:
        usage()
    word, words = sys.argv[1], sys.argv[2:]
    if word == "check" and not words:
        sys.exit(runner.run_all(table.CHECK))
    if word == "test":
        steps = [table.BUILD, table.some_tests(words)] if words else table.CHECK + table.TEST
        sys.exit(runner.run_all(steps, show=bool(words)))
    if word == "verify":
        steps, seconds = chosen(words)
        if not steps:
            print("earshot: every step has passed with this tree", file=sys.stderr)
            sys.exit(0)
        first = [table.BUILD] if any("build" in step.after for step in steps) else []
        sys.exit(runner.run_in_turn(first, steps, seconds))
    if word == "list" and words in ([], ["tests"]):
        sys.exit(inventory.show(with_tests=bool(words)))
    if word == "list" and words == ["check"]:
        sys.exit(inventory.check())
    usage(f"unknown: {' '.join(sys.argv[1:])}")


if __name__ == "__main__":
    os.chdir(table.ROOT)
    main()
