#!/usr/bin/env bash
# rounds.sh [COUNT [BUSY [FLAGS OF swift test]]]: `make test` COUNT times in a row (5), beside BUSY loops that each keep a core busy (0); with flags the
# tests that they choose. The first failure ends it.
set -euo pipefail
cd "$(dirname "$0")/.."
count=${1:-5}
busy=${2:-0}
if ! [[ $count =~ ^[1-9][0-9]*$ && $busy =~ ^[0-9]+$ ]]; then
    echo "rounds: COUNT and BUSY are whole numbers, not \"$count\" and \"$busy\"" >&2
    exit 2
fi
shift $(($# < 2 ? $# : 2))

loops=()
end() { ((${#loops[@]} == 0)) || kill "${loops[@]}" 2>/dev/null || true; }
trap end EXIT
for ((index = 0; index < busy; index++)); do
    (while :; do :; done) &
    loops+=($!)
done
for ((round = 1; round <= count; round++)); do
    start=$SECONDS
    scripts/test.sh test "$@" || { echo "rounds: round $round of $count failed after $((SECONDS - start)) s" >&2; exit 1; }
    echo "rounds: round $round of $count passed in $((SECONDS - start)) s, load $(cut -d ' ' -f 1 /proc/loadavg)" >&2
done
