"""Checks of what packages bring, and of how the server works with what it is installed beside.

python3 Tests/Package --earshot BINARY [CHECK…]   the quick ones, each by its name; part of `make test`
python3 Tests/Package life [DEB]                  a package's life in a clean Debian; as root; `make package-test`
"""
import argparse
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import files
import image
import life
import nginx
import notify


def checks():
    return {f"{module.__name__}.{check.__name__}": check for module in [files, notify, nginx] for check in module.CHECKS}


def quick(arguments):
    parser = argparse.ArgumentParser(prog="Tests/Package")
    parser.add_argument("--earshot", required=True, help="the built binary")
    parser.add_argument("checks", nargs="*", help=f"of {', '.join(checks())}")
    given = parser.parse_args(arguments)
    failed = []
    for name, check in checks().items():
        if given.checks and name not in given.checks:
            continue
        begin = time.monotonic()
        try:
            check(os.path.abspath(given.earshot))
            print(f"package: {name}: {time.monotonic() - begin:.1f} s", flush=True)
        except Exception as error:  # each check is told, whatever ended it
            print(f"FAILED package {name}: {error}", flush=True)
            failed.append(name)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    if sys.argv[1:2] == ["life"]:
        life.main(sys.argv[2:])
    elif sys.argv[1:2] == ["use"]:
        life.use(sys.argv[2:])
    elif sys.argv[1:2] == ["image"]:
        image.use(sys.argv[2:])
    else:
        quick(sys.argv[1:])
