#!/usr/bin/env bash
# The cost of apps: members of mesh rooms, frames between them, calls of the Tencent-compatible API beside viewers, classes and
# claw machines. Exit code 1 when a bar is missed. See README.md in this folder.
#
#   PARTS="idle relay facade classes machines both"   which of them
#   MEMBERS=10000               mesh members of the first part; needs twice as many descriptors (ulimit -n)
#   FRAMES=2000                 frames a second of the second part
#   CALLS=200                   calls a second of the third part
#   CLASSES=1000                classes of 17 of the fourth part: each person a descriptor here and in the server
#   MACHINES=200                machines of 21 of the fifth part
#   BOTH_CLASSES=650            classes of the last part, beside MACHINES
#   SECONDS_MEASURED=30         how long each is measured
#   EARSHOT_BIN                 binary to use instead of a release build
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf 'bench: %s\n' "$*" >&2; }
for tool in ffmpeg python3 taskset; do
    command -v "$tool" >/dev/null || { say "needs $tool: make test installs it"; exit 1; }
done
EARSHOT_BIN=${EARSHOT_BIN:-$(scripts/build.sh release earshot)/earshot}
case $EARSHOT_BIN in
    */debug/*) say "a debug build: its figures are not those of a release" ;;
esac
results=Benchmarks/results/$(date -u +%Y%m%dT%H%M%SZ)-apps
mkdir -p "$results"
code=0
python3 Benchmarks/Apps --earshot "$EARSHOT_BIN" --results "$results" | tee "$results/table.txt" || code=$?
say "every figure is in $results"
exit "$code"
