#!/usr/bin/env bash
# Counts the instructions and heap allocations that one frame costs, and one frame for one viewer, and fails when they are over budget.
# Counts are the same on a slow machine and a fast one, so they say what times cannot. See README.md in this folder.
#
#   BUDGET_BIN   binary to use instead of a release build
# Arguments: none.
set -euo pipefail
. "$(dirname "$0")/budget-program.sh"

# counted TOOL OPTION… LOAD…: runs the load under the tool; its report is in $work/report.
counted() {
    local tool=$1
    shift
    valgrind --tool="$tool" "--$tool-out-file=$work/report" "$@" >"$work/log" 2>&1 || {
        tail -n 15 "$work/log" >&2
        return 1
    }
}

# nonzero NUMBER: prints it, or fails: without the entry's name in the binary, the tools count nothing.
nonzero() {
    if [[ ! $1 =~ ^[1-9][0-9]*$ ]]; then
        say "counted '$1' below $entry, expected more than 0: does the binary have that function's name?"
        return 1
    fi
    echo "$1"
}

# instructions LOAD…: of a whole run.
instructions() {
    counted callgrind --toggle-collect="$entry" "$work/earshot-budget" "$@" || return 1
    nonzero "$(sed -n 's/^\(summary\|totals\): *\([0-9]*\).*/\2/p' "$work/report" | head -n 1)"
}

# allocations LOAD…: blocks of a whole run.
allocations() {
    counted dhat --num-callers=100 "$work/earshot-budget" "$@" || return 1
    nonzero "$(python3 - "$work/report" "$entry" <<'PY'
import json, sys

path, entry = sys.argv[1:]
with open(path) as file:
    report = json.load(file)
names = report["ftbl"]
print(sum(point["tbk"] for point in report["pps"] if any(entry in names[frame] for frame in point["fs"])))
PY
)"
}

# slopes COUNT BYTES PLACE: four runs, of F and 2F frames to V and 2V viewers; what is left of the differences is what one frame costs, and
# one frame for one viewer, in hundredths. Starting, joining and ending cancel out.
frames=500 viewers=40
slopes() {
    local count=$1 base more wide both
    shift
    base=$("$count" $frames $viewers "$@")
    more=$("$count" $((2 * frames)) $viewers "$@")
    wide=$("$count" $frames $((2 * viewers)) "$@")
    both=$("$count" $((2 * frames)) $((2 * viewers)) "$@")
    local perViewer=$((((both - wide - more + base) * 100) / (frames * viewers)))
    echo "$(((more - base) * 100 / frames - perViewer * viewers)) $perViewer"
}

# hundredths NUMBER
hundredths() {
    local sign='' value=$1
    if ((value < 0)); then sign=- value=$((-value)); fi
    printf '%s%d.%02d' "$sign" $((value / 100)) $((value % 100))
}

failed=
row() {
    local what=$1 value=$2 limit=$3 verdict=ok
    if ((value > limit)); then verdict=OVER failed=1; fi
    printf '%-72s %12s %12s  %s\n' "$what" "$(hundredths "$value")" "$(hundredths "$limit")" "$verdict"
}

printf '%-72s %12s %12s\n' "" counted limit
while read -r count bytes place perFrame perViewer; do
    [[ -n $count && $count != \#* && $count != remux && $count != loop ]] || continue
    read -r frame viewer < <(slopes "$count" "$bytes" "$place")
    where="of $bytes bytes"
    if [[ $place == apart ]]; then where+=", viewers on another loop"; fi
    row "$count per frame $where" "$frame" $((perFrame * 100))
    row "$count per frame × viewer $where" "$viewer" $((perViewer * 100))
done <Benchmarks/budget.limits

# One publisher and one viewer on a real event loop: what the loop's thread, the second, does for a frame. Twice the frames less once.
stepped() {
    rm -f "$work"/report*
    valgrind --tool=callgrind --separate-threads=yes "--callgrind-out-file=$work/report" "$work/earshot-budget" loop "$@" >"$work/log" 2>&1 || {
        tail -n 15 "$work/log" >&2
        return 1
    }
    nonzero "$(sed -n 's/^\(summary\|totals\): *\([0-9]*\).*/\2/p' "$work/report-02" | head -n 1)"
}
while read -r what count bytes limit; do
    [[ $what == loop ]] || continue
    first=$(stepped 1000 "$bytes")
    more=$(stepped 2000 "$bytes")
    row "$count per frame of $bytes bytes, event loop and one viewer" $(((more - first) / 10)) $((limit * 100))
done <Benchmarks/budget.limits

# Ten seconds of 720p30, 2 Mbit/s, and AAC; one thread, so that the file is the same on any machine. Reading it cancels out.
ffmpeg -v error -y -f lavfi -i testsrc2=s=1280x720:r=30:d=10 -f lavfi -i sine=r=48000:d=10 -c:v libx264 -preset ultrafast -tune zerolatency \
    -threads 1 -b:v 2M -g 60 -c:a aac -b:a 128k -f flv "$work/clip.flv"
while read -r what count format limit; do
    [[ $what == remux ]] || continue
    first=$("$count" remux "$work/clip.flv" 2 "$format")
    more=$("$count" remux "$work/clip.flv" 12 "$format")
    row "$count for ten seconds of 720p30 into $format" $(((more - first) * 10)) $((limit * 100))
done <Benchmarks/budget.limits

if [[ -n $failed ]]; then
    say "over budget; limits are in Benchmarks/budget.limits, and raised only with a reason"
    exit 1
fi
