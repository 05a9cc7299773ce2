"""Metrics, alert rules and dashboard with a real Prometheus: python3 Tests/Metrics --earshot BINARY [NAME…]."""
import argparse
import os
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "Console"))

from cases import CASES  # noqa: E402


def main():
    parser = argparse.ArgumentParser(prog="metrics", description="Scrapes servers with Prometheus, and asks what alerts and dashboard ask.")
    parser.add_argument("--earshot", default=os.environ.get("EARSHOT_BIN"), required=not os.environ.get("EARSHOT_BIN"), help="the binary to test")
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
        with tempfile.TemporaryDirectory(prefix="earshot-metrics-") as folder:
            try:
                case(os.path.abspath(options.earshot), folder)
            except Exception as error:  # noqa: BLE001: one case that fails does not hold the others up.
                failed.append(case.__name__)
                print(f"FAILED {case.__name__}: {type(error).__name__}: {error}", flush=True)
                continue
        print(f"ok     {case.__name__:24} {time.monotonic() - start:5.1f} s", flush=True)
    if failed:
        print(f"metrics: failed: {', '.join(failed)}")
        sys.exit(1)


main()
