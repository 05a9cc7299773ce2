#!/usr/bin/env bash
# Counts the instructions of a fan-out, and how many of them verdicts, statistics and traces cost. Fails when they are more than 2 %, and when
# a kind of them is not found, as after a renaming. See README.md in this folder.
#
#   BUDGET_BIN   binary to use instead of a release build
# Arguments: none.
set -euo pipefail
. "$(dirname "$0")/budget-program.sh"

# Starting, joining and ending cancel out.
viewers=500 less=250 more=750
for frames in $less $more; do
    valgrind --tool=callgrind --toggle-collect="$entry" "--callgrind-out-file=$work/$frames" "$work/earshot-budget" "$frames" $viewers 4000 home judged \
        >"$work/log" 2>&1 || {
        tail -n 15 "$work/log" >&2
        exit 1
    }
done

python3 - "$work/$less" "$work/$more" $((more - less)) <<'PY'
import re, sys

MOST = 2.0
# Kinds of work, by the mangled names of their functions. What those call counts with them; of `alone` only their own instructions do, since the
# work is inlined there, beside other work.
KINDS = {
    "arrivals": {"with": r"5Relay(12ArrivalMeter|14TrackArrivals)V", "alone": r"5Relay0A4LoopC6ingest"},
    "verdicts": {"with": r"6Health(11StreamJudge|14VerdictReports|12UplinkAdvice)V", "alone": r"5Relay10HomeStreamC5judge"},
    "statistics": {"with": r"5Relay(11StreamMeter|13StreamHistory)V"},
    "histograms of delay": {"with": r"6Health9HistogramV"},
    "flight recorder": {"with": r"5Trace\d+\w+[CV]"},
}


def read(path):
    """Instructions of the whole run, those of each function's own, and those of each call: {(caller, callee): instructions}."""
    names, own, calls, whole = {}, {}, {}, 0
    function = callee = None
    is_call = False

    def name(text):
        number, _, found = text.partition(" ")
        return names.setdefault(number, found)

    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            line = line.rstrip("\n")
            if line.startswith("fn="):
                function = name(line[3:])
            elif line.startswith("cfn="):
                callee = name(line[4:])
            elif line.startswith("calls="):
                is_call = True
            elif line.startswith(("summary:", "totals:")):
                whole = int(line.split()[1])
            elif re.match(r"[0-9+*-]", line):
                count = int((line.split() + ["0"])[1])
                if is_call:
                    calls[function, callee] = calls.get((function, callee), 0) + count
                    is_call = False
                else:
                    own[function] = own.get(function, 0) + count
    return whole, own, calls


def matches(rule, name):
    return bool(rule) and re.search(r"^\$s" + rule, name) is not None


def cost(run):
    """Of each part of each kind. A call from one counted function to another is not counted, the other's own instructions are."""
    whole, own, calls = run
    kinds = {name: (kind, part) for name in own for kind, rules in KINDS.items() for part, rule in rules.items() if matches(rule, name)}
    sums = {(kind, part): 0 for kind, rules in KINDS.items() for part in rules}
    for name, place in kinds.items():
        sums[place] += own[name]
    for (caller, callee), count in calls.items():
        if kinds.get(caller, ("", ""))[1] == "with" and callee not in kinds:
            sums[kinds[caller]] += count
    return whole, sums


(first, less), (second, more), frames = cost(read(sys.argv[1])), cost(read(sys.argv[2])), int(sys.argv[3])
whole = (second - first) / frames
print(f"{'a frame to 500 viewers':24} {whole:12,.0f} instructions")
total = 0.0
for kind in KINDS:
    each = sum(more[kind, part] - less[kind, part] for part in KINDS[kind]) / frames
    total += each
    print(f"{kind:24} {each:12,.0f} {100 * each / whole:8.2f} %")
print(f"{'together':24} {total:12,.0f} {100 * total / whole:8.2f} %, at most {MOST:.0f} %")
missing = [f"{kind} ({rules[part]})" for kind, rules in KINDS.items() for part in rules if more[kind, part] <= less[kind, part]]
if missing:
    sys.exit(f"share: no work of {', '.join(missing)}: have its functions other names?")
if total > MOST / 100 * whole:
    sys.exit("share: over the bar")
PY
