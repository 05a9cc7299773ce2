"""Apps' own clients against a real server: python3 Tests/Apps --earshot BINARY [--keep FOLDER] [NAME…]. The vendor's SDKs, aiortc and Chromium."""

import argparse
import os
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "Console"))

import cases  # noqa: E402, F401: each registers its cases.
import cases_board  # noqa: E402, F401
import cases_class  # noqa: E402, F401
import cases_kill  # noqa: E402, F401
import cases_machine  # noqa: E402, F401
from registry import CASES  # noqa: E402
from server import Server  # noqa: E402


def main():
    parser = argparse.ArgumentParser(prog="apps", description="Drives the server by the clients of the apps built on it.")
    parser.add_argument("--earshot", default=os.environ.get("EARSHOT_BIN"), required=not os.environ.get("EARSHOT_BIN"), help="the binary to test")
    parser.add_argument("--keep", metavar="FOLDER", help="write screenshots there")
    parser.add_argument("names", nargs="*", help="only these cases")
    options = parser.parse_args()
    known = [case.__name__ for case in CASES]
    unknown = set(options.names) - set(known)
    if unknown:
        parser.error(f"there is no case {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    failed = []
    for case in CASES:
        if options.names and case.__name__ not in options.names:
            continue
        start = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="earshot-apps-") as folder:
            try:
                with Server(os.path.abspath(options.earshot), folder, settings=getattr(case, "settings", None)) as server:
                    server.keep = options.keep
                    try:
                        case(server)
                    except BaseException:
                        for line in server.log().splitlines()[-15:]:
                            print(f"    {line[:300]}")
                        raise
            except Exception as error:  # noqa: BLE001: one case that fails does not hold the others up.
                failed.append(case.__name__)
                print(f"FAILED {case.__name__}: {type(error).__name__}: {error}", flush=True)
                continue
        print(f"ok     {case.__name__:24} {time.monotonic() - start:5.1f} s", flush=True)
    if failed:
        print(f"apps: failed: {', '.join(failed)}")
        sys.exit(1)


main()
