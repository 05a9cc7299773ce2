"""Shared by the suites of clients: their options, a line for each case, and the end."""
import argparse
import os
import sys
import tempfile
import time


def run(name, description, cases, act, keeps=False, arguments=None):
    """Runs the cases, functions by name, or those that the arguments choose, each by `act(function, options, folder)` with a folder of its own. One that
    fails does not hold the others up. Ends the process. `keeps`: whether pictures can be kept."""
    parser = argparse.ArgumentParser(prog=name, description=description)
    parser.add_argument("--earshot", default=os.environ.get("EARSHOT_BIN"), required=not os.environ.get("EARSHOT_BIN"), help="the binary to test")
    if keeps:
        parser.add_argument("--keep", metavar="FOLDER", help="write screenshots there, to be looked at")
    parser.add_argument("--without", metavar="NAME,…", default="", help="all but these cases")
    parser.add_argument("names", nargs="*", help="only these cases")
    options = parser.parse_args(arguments)
    options.earshot = os.path.abspath(options.earshot)
    without = set(filter(None, options.without.split(",")))
    unknown = (set(options.names) | without) - set(cases)
    if unknown:
        parser.error(f"there is no case {', '.join(sorted(unknown))}; there are {', '.join(cases)}")
    if keeps and options.keep:
        os.makedirs(options.keep, exist_ok=True)
    failed = []
    for title, case in cases.items():
        if title in without or options.names and title not in options.names:
            continue
        start = time.monotonic()
        with tempfile.TemporaryDirectory(prefix=f"earshot-{name}-") as folder:
            try:
                act(case, options, folder)
            except Exception as error:  # noqa: BLE001: any error is reported.
                failed.append(title)
                print(f"FAILED {title}: {type(error).__name__}: {error}", flush=True)
                continue
        print(f"ok     {title:24} {time.monotonic() - start:5.1f} s", flush=True)
    if failed:
        print(f"{name}: failed: {', '.join(failed)}")
    sys.exit(1 if failed else 0)


def by_name(cases):
    return {case.__name__: case for case in cases}


def tell_log(server):
    """The end of the server's log, after a case has failed."""
    for line in server.log().splitlines()[-15:]:
        print(f"    {line[:300]}")
