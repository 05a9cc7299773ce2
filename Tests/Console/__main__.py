"""The console in a real browser, against a real server with real pushes: python3 Tests/Console --earshot BINARY [--keep FOLDER] [NAME…].
--keep writes a screenshot of each case there, to be looked at. Chromium and ffmpeg must be installed."""

import argparse
import os
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from browser import Browser  # noqa: E402
import cases  # noqa: E402, F401
import cases_access  # noqa: E402, F401
import cases_attacks  # noqa: E402, F401
import cases_many  # noqa: E402, F401
import cases_room  # noqa: E402, F401
import cases_streams  # noqa: E402, F401
import cases_talk  # noqa: E402, F401
from looks import CASES  # noqa: E402
from server import Server  # noqa: E402


def main():
    parser = argparse.ArgumentParser(prog="console", description="Drives the console by a headless Chromium.")
    parser.add_argument("--earshot", default=os.environ.get("EARSHOT_BIN"), required=not os.environ.get("EARSHOT_BIN"), help="the binary to test")
    parser.add_argument("--keep", metavar="FOLDER", help="write screenshots there")
    parser.add_argument("names", nargs="*", help="only these cases")
    options = parser.parse_args()
    unknown = set(options.names) - {case.__name__ for case in CASES}
    if unknown:
        parser.error(f"there is no case {', '.join(sorted(unknown))}; there are {', '.join(case.__name__ for case in CASES)}")
    if options.keep:
        os.makedirs(options.keep, exist_ok=True)
    failed = []
    for case in CASES:
        if options.names and case.__name__ not in options.names:
            continue
        start = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="earshot-console-") as folder:
            try:
                with Server(os.path.abspath(options.earshot), folder, settings=case.settings) as server, Browser(folder) as browser:

                    def keep(page, name=case.__name__):
                        if options.keep:
                            with open(os.path.join(options.keep, f"{name}.png"), "wb") as file:
                                file.write(page.picture())

                    try:
                        case(server, browser, keep)
                        problems = [problem for problem in browser.problems if not any(text in problem for text in case.expected)]
                        assert not problems, f"the browser complains: {problems}"
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
        print(f"console: failed: {', '.join(failed)}")
        sys.exit(1)


main()
