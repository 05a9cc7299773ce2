#!/usr/bin/env bash
# The cost of the room registry: a page of few rooms and of many, and the delay of frames with and without a thousand changes of rooms
# a second on the same core. See README.md in this folder.
#
#   SECONDS_MEASURED=60  how long frames are measured, each time
#   RATE=1000            transitions a second
#   MANY=100000          rooms of the large store
#   EARSHOT_BIN, LOAD_BIN  binaries to use instead of a release build
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf 'bench: %s\n' "$*" >&2; }
seconds=${SECONDS_MEASURED:-60} rate=${RATE:-1000}
if [[ -z ${EARSHOT_BIN:-} || -z ${LOAD_BIN:-} ]]; then
    bin=$(scripts/build.sh release earshot earshot-load)
    EARSHOT_BIN=${EARSHOT_BIN:-$bin/earshot}
    LOAD_BIN=${LOAD_BIN:-$bin/earshot-load}
fi
on_server_core=() on_load_core=()
if (($(nproc) >= 2)) && command -v taskset >/dev/null; then
    on_server_core=(taskset -c 0)
    on_load_core=(taskset -c 1)
fi
work=$(mktemp -d)
server='' load=''
stop() {
    [[ -n $1 ]] || return 0
    kill "$1" 2>/dev/null || true
    wait "$1" 2>/dev/null || true
}
trap 'stop "$load"; stop "$server"; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
results=Benchmarks/results/$(date -u +%Y%m%dT%H%M%SZ)-rooms
mkdir -p "$results"

say "pages of few rooms and of many"
"$LOAD_BIN" pages --many "${MANY:-100000}" --json "$results/pages.json" | tee "$results/pages.txt"

EARSHOT_API_RATE_LIMIT=1000000 "${on_server_core[@]}" "$EARSHOT_BIN" serve --rtmp 127.0.0.1:0 --http 127.0.0.1:0 --data "$work/data" \
    >"$work/server.log" 2>&1 &
server=$!
for _ in {1..100}; do
    grep -q 'Stop with' "$work/server.log" && break
    sleep 0.1
done
rtmp=$(grep -oE 'rtmp://[^/ ]+:[0-9]+' "$work/server.log" | head -n 1)
http=$(grep -oE 'http://[^/ ]+:[0-9]+' "$work/server.log" | head -n 1)

frames() {
    "${on_load_core[@]}" "$LOAD_BIN" run --url "$rtmp/live" --server earshot --server-pid "$server" --scenario "rooms-$1" --mode fanout \
        --viewers 200 --video-kbps 1936 --fps 30 --gop 60 --audio-kbps 64 --seconds "$seconds" --warmup 3 --json "$results/$1.json" \
        | tee "$results/$1.txt"
}
say "200 viewers, rooms at rest"
frames quiet
say "200 viewers, $rate changes of rooms a second"
"${on_load_core[@]}" "$LOAD_BIN" transitions --api "$http" --token-file "$work/data/admin-token" --rate "$rate" --seconds "$((seconds + 12))" \
    --json "$results/transitions.json" >"$results/transitions.txt" 2>&1 &
load=$!
sleep 5
frames busy
wait "$load" || { cat "$results/transitions.txt" >&2; exit 1; }
load=''
cat "$results/transitions.txt"
say "every figure is in $results"
