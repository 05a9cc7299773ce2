"""report.py FOLDER: prints what Benchmarks/cluster.sh measured, and writes it to FOLDER/table.txt: of each figure the best of the rounds,
and all of them in brackets."""

import json
import pathlib
import re
import sys

folder = pathlib.Path(sys.argv[1])
COMMITS = re.compile(r'earshot_store_commit_seconds_bucket\{le="([^"]+)"\} (\d+)')
LAG = re.compile(r"earshot_cluster_signal_lag_seconds ([\d.e-]+)")


def commits(name):
    """How many transactions took at most so many seconds, over both nodes."""
    counts = {}
    for node in "ab":
        for bound, count in COMMITS.findall((folder / f"{name}-{node}.metrics").read_text()):
            bound = float("inf") if bound == "+Inf" else float(bound)
            counts[bound] = counts.get(bound, 0) + int(count)
    return counts


def quantile(before, after, share):
    """In milliseconds, evenly within its bucket, as Prometheus's histogram_quantile; None without any."""
    counts = sorted((bound, count - before.get(bound, 0)) for bound, count in after.items())
    if not counts or not counts[-1][1]:
        return None
    wanted, low, seen = share * counts[-1][1], 0.0, 0
    for bound, count in counts:
        if count >= wanted:
            end = bound if bound != float("inf") else low
            return 1000 * (low + (end - low) * (wanted - seen) / max(1, count - seen))
        low, seen = bound, count
    return None


def run(file):
    nodes = json.loads(file.read_text())
    name = file.name.removesuffix(".json")
    figures = dict(nodes)
    if (folder / f"{name}-before-a.metrics").exists():
        before, after = commits(f"{name}-before"), commits(f"{name}-after")
        figures["commitP50"], figures["commitP99"] = quantile(before, after, 0.5), quantile(before, after, 0.99)
        figures["transactions"] = (max(after.values()) - max(before.values())) / nodes["seconds"]
    loads = [json.loads(path.read_text()) for path in sorted(folder.glob(f"{name}-load-*.json"))]
    if loads:
        figures["answerP50"] = max(load["answerP50Ms"] for load in loads)
        figures["answerP99"] = max(load["answerP99Ms"] for load in loads)
        figures["failed"] = sum(load["failed"] for load in loads)
    lags = [float(lag) for path in folder.glob(f"{name}-lag-*.metrics") for lag in LAG.findall(path.read_text())]
    figures["realLag"] = 1000 * max(lags) if lags else None
    return figures


ROWS = [
    ("PostgreSQL, cores", lambda f: f["databaseCores"], min, "{:.2f}"),
    ("events a second", lambda f: f["eventsPerSecond"], max, "{:.0f}"),
    ("… transactions a second that made them", lambda f: f.get("transactions"), max, "{:.1f}"),
    ("… commit p50, by the nodes' metric, ms", lambda f: f.get("commitP50"), min, "{:.1f}"),
    ("… commit p99, ms", lambda f: f.get("commitP99"), min, "{:.1f}"),
    ("… a client's answer p50, ms", lambda f: f.get("answerP50"), min, "{:.1f}"),
    ("… a client's answer p99, ms", lambda f: f.get("answerP99"), min, "{:.1f}"),
    ("… calls that failed", lambda f: f.get("failed"), min, "{:.0f}"),
    ("leases renewed a second", lambda f: f["leasesPerSecond"], max, "{:.0f}"),
    ("… p50, ms", lambda f: f["lease"].get("p50Ms"), min, "{:.1f}"),
    ("… p99, ms", lambda f: f["lease"].get("p99Ms"), min, "{:.1f}"),
    ("looks at the signals a second", lambda f: f["looksPerSecond"], max, "{:.0f}"),
    ("… that found some", lambda f: f["looksWithNewsPerSecond"], max, "{:.0f}"),
    ("… p50, ms", lambda f: f["look"].get("p50Ms"), min, "{:.1f}"),
    ("… p99, ms", lambda f: f["look"].get("p99Ms"), min, "{:.1f}"),
    ("… rows of signals a second, in thousands", lambda f: f["signalRowsPerSecond"] / 1000, max, "{:.0f}"),
    ("… rows of events a second, in thousands", lambda f: f["eventRowsPerSecond"] / 1000, max, "{:.0f}"),
    ("lists of all nodes a second", lambda f: f["scrapesPerSecond"], max, "{:.0f}"),
    ("signal lag of simulated nodes p50, ms", lambda f: f["signalLag"].get("p50Ms"), min, "{:.0f}"),
    ("… p99, ms", lambda f: f["signalLag"].get("p99Ms"), min, "{:.0f}"),
    ("signal lag of the real nodes, the most of ten samples each, ms", lambda f: f["realLag"], min, "{:.0f}"),
    ("real nodes, cores", lambda f: f["watchedCores"].get("a", 0) + f["watchedCores"].get("b", 0), min, "{:.2f}"),
    ("simulated nodes, cores", lambda f: f["ownCores"], min, "{:.2f}"),
    ("busy: core 0", lambda f: f["core0"]["busy"], min, "{:.2f}"),
    ("busy: core 1", lambda f: f["core1"]["busy"], min, "{:.2f}"),
]

scenarios = {}
for file in sorted(folder.glob("*.round*.json")):
    if re.fullmatch(r".*\.round\d+\.json", file.name):
        scenarios.setdefault(file.name.rsplit(".round", 1)[0], []).append(run(file))

lines = []
for scenario, runs in scenarios.items():
    lines.append(f"\n{scenario}, {len(runs)} rounds of {runs[0]['seconds']:.0f} s: the best of each figure [every round]")
    for label, get, best, form in ROWS:
        values = [value for value in map(get, runs) if value is not None]
        if values and (any(values) or "failed" in label):
            lines.append(f"  {label:<64} {form.format(best(values)):>8}  [{', '.join(form.format(value) for value in values)}]")
    for label, key in (("events", "eventsHaveNoGap"), ("signals", "signalsHaveNoGap")):
        gaps = [run[key] for run in runs]
        text = "none made" if None in gaps else "no gap" if all(gaps) else "A GAP"
        lines.append(f"  {'numbers of ' + label:<64} {text:>8}")
loads = folder / "load.txt"
if loads.exists():
    lines.append("\nload average before each round (1 minute): " + ", ".join(loads.read_text().split()))
text = "\n".join(lines).lstrip() + "\n"
(folder / "table.txt").write_text(text)
print(text, end="")
