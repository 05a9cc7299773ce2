"""The console's bars: python3 Benchmarks/Console --earshot BINARY --results FOLDER. What is measured: README.md of the folder above; what can be chosen: console.sh."""
import argparse
import json
import os
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "Tests", "Console")]

from bars import Bars  # noqa: E402
import load  # noqa: E402
import pages  # noqa: E402

PARTS = {"cost": load.cost, "paint": pages.paint, "preview": pages.preview, "change": load.change, "many": load.many, "heap": pages.heap}


def main():
    parser = argparse.ArgumentParser(prog="console", description="Measures the console by a headless Chromium.")
    parser.add_argument("--earshot", required=True)
    parser.add_argument("--results", required=True)
    options = parser.parse_args()
    wanted = os.environ.get("PARTS", " ".join(PARTS)).split()
    unknown = set(wanted) - set(PARTS)
    if unknown:
        parser.error(f"there is no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    bars = Bars()
    for name in wanted:
        start = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="earshot-console-") as folder:
            try:
                PARTS[name](os.path.abspath(options.earshot), folder, bars)
            except Exception as error:  # noqa: BLE001: the other parts have their figures all the same.
                bars.fail(f"{name} ended early: {type(error).__name__}: {str(error)[:400]}")
            finally:
                os.sched_setaffinity(0, range(os.cpu_count() or 1))
        print(f"bench: {name}: {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)
    kind = "debug" if "/debug/" in options.earshot else "release"
    print(bars.table(f"{options.earshot} ({kind} build)"))
    with open(os.path.join(options.results, "figures.json"), "w", encoding="utf-8") as file:
        json.dump({"binary": options.earshot, "figures": bars.lines}, file, indent=1)
    sys.exit(1 if bars.missed else 0)


main()
