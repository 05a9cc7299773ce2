#!/usr/bin/env bash
# The cost of an open console for the server, and its speed: 200 live rooms watched by two browsers, its first paint, its
# preview, 5,000 rooms that change, 100,000 rooms, a page that stays open. Exit code 1 when a bar is missed. See README.md in this folder.
#
#   PARTS="cost paint preview change many heap"  which of them
#   STREAMS=200            pushes of the first part
#   SECONDS_MEASURED=60    CPU is measured so long, each time
#   CHANGING=5000 RATE=200 rooms that change, changes a second of the paced run
#   MANY=100000            rooms of the large store
#   HEAP_SECONDS=180       how long the page stays open, its timers running HEAP_SPEED=100 times as fast
#   EARSHOT_BIN            binary to use instead of a release build
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf 'bench: %s\n' "$*" >&2; }
for tool in ffmpeg chromium python3; do
    command -v "$tool" >/dev/null || { say "needs $tool: make test installs it"; exit 1; }
done
EARSHOT_BIN=${EARSHOT_BIN:-$(scripts/build.sh release earshot)/earshot}
case $EARSHOT_BIN in
    */debug/*) say "a debug build: its figures are not those of a release" ;;
esac
results=Benchmarks/results/$(date -u +%Y%m%dT%H%M%SZ)-console
mkdir -p "$results"
code=0
python3 Benchmarks/Console --earshot "$EARSHOT_BIN" --results "$results" | tee "$results/table.txt" || code=$?
say "every figure is in $results"
exit "$code"
