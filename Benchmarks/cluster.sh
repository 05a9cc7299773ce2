#!/usr/bin/env bash
# What a large cluster costs its PostgreSQL: the leases and looks of a thousand simulated nodes, beside the events of two real ones. PostgreSQL,
# with fsync, has core 0; all else has core 1. See README.md in this folder.
#
#   SCENARIOS="100 250"  milliseconds between two looks of a node; with +feeds every simulated node reads the events, as one does that has
#                        subscribers of /events; with +quiet there are no events
#   NODES=1000           simulated nodes
#   CONNECTIONS=40       connections that they share
#   RATE=500             changes of rooms a second, over both real nodes; each is two events, of the stream and of its room
#   SCRAPE=0             seconds after which each node lists all nodes, as a scrape of its /metrics does; 0: never
#   SECONDS_MEASURED=30, ROUNDS=3
#   EARSHOT_BIN, LOAD_BIN  binaries to use instead of a release build
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf 'bench: %s\n' "$*" >&2; }
seconds=${SECONDS_MEASURED:-30} rounds=${ROUNDS:-3} rate=${RATE:-500} node_count=${NODES:-1000}
read -ra scenarios <<<"${SCENARIOS:-100 250}"
scripts/packages.sh cluster-bench
((seconds >= 1 && seconds <= 300 && rounds >= 1 && rounds <= 10)) || { say "SECONDS_MEASURED is at most 300, ROUNDS at most 10"; exit 2; }
if [[ -z ${EARSHOT_BIN:-} || -z ${LOAD_BIN:-} ]]; then
    bin=$(scripts/build.sh release earshot earshot-load)
    EARSHOT_BIN=${EARSHOT_BIN:-$bin/earshot}
    LOAD_BIN=${LOAD_BIN:-$bin/earshot-load}
fi
on_database_core=() on_load_core=()
if (($(nproc) >= 2)) && command -v taskset >/dev/null; then
    on_database_core=(taskset -c 0)
    on_load_core=(taskset -c 1)
fi
work=$(mktemp -d)
declare -A running=()
database=''
stop() {
    [[ -n ${running[$1]:-} ]] || return 0
    kill "${running[$1]}" 2>/dev/null || true
    wait "${running[$1]}" 2>/dev/null || true
    unset "running[$1]"
}
stop_all() {
    local name
    for name in load-a load-b nodes a b; do stop "$name"; done
    [[ -z $database ]] || scripts/postgres.sh stop "$work/postgres" || true
    database=''
}
trap 'stop_all; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
results=Benchmarks/results/$(date -u +%Y%m%dT%H%M%SZ)-cluster
mkdir -p "$results"

cc=$(command -v cc || command -v clang)
read -ra libpq <<<"$(pkg-config --cflags --libs libpq)"
"$cc" -O2 -Wall -o "$work/nodes" Benchmarks/Cluster/nodes.c "${libpq[@]}"
# As the server's statement lists them.
kinds=$(sed -nE "s/.*case [a-zA-Z]+ = \"([^\"]+)\".*/'\1'/p" Sources/Rooms/Events/RoomEvent.swift | paste -sd, | sed 's/,/, /g')

# start_node NAME: sets http.
declare -A http=()
start_node() {
    local name=$1 tries=300
    EARSHOT_DATABASE_URL=$url EARSHOT_CLUSTER_KEY=$key EARSHOT_CLUSTER_NAME=$name EARSHOT_API_RATE_LIMIT=1000000 "${on_load_core[@]}" \
        "$EARSHOT_BIN" serve --rtmp 127.0.0.1:0 --http 127.0.0.1:0 --data "$work/$name" >"$work/$name.log" 2>&1 &
    running[$name]=$!
    until grep -qs 'Stop with' "$work/$name.log"; do
        if ((tries-- == 0)) || ! kill -0 "${running[$name]}" 2>/dev/null; then
            say "node $name did not start"
            tail -n 15 "$work/$name.log" >&2
            exit 1
        fi
        sleep 0.1
    done
    http[$name]=$(grep -oE 'http://[^/ ]+:[0-9]+' "$work/$name.log" | head -n 1)
}

metrics() { curl -sS --max-time 10 -H "Authorization: Bearer $(cat "$work/a/admin-token")" "${http[$1]}/metrics"; }

# Waits until the rooms are made and changed.
await_changes() {
    local name=$1 tries=120
    until metrics "$name" | grep -qE '^earshot_room_transitions_total\{kind="room.forbidden"\} [1-9]'; do
        ((tries-- > 0)) || { say "node $name changes no room"; cat "$work"/load-*.txt >&2; exit 1; }
        sleep 0.5
    done
}

# round SCENARIO NUMBER
round() {
    local scenario=$1 name=$1.round$2 part options=() node tries
    local poll=${scenario%%+*}
    for part in $(tr + ' ' <<<"$scenario"); do
        case $part in
        feeds) options+=(--events) ;;
        quiet | "$poll") ;;
        *) say "there is no scenario $scenario"; exit 2 ;;
        esac
    done
    say "$scenario, round $2"
    cut -d ' ' -f 1 /proc/loadavg >>"$results/load.txt"
    # Also what the last round's processes said: this one's are awaited by what they say.
    rm -rf "$work"/{a,b} "$work"/*.log "$work"/*.txt
    database=1
    url=$(EARSHOT_POSTGRES_FAST='' EARSHOT_POSTGRES_OWNER=$$ "${on_database_core[@]}" scripts/postgres.sh start "$work/postgres")
    key=$(od -An -N48 -tx1 /dev/urandom | tr -d ' \n')
    start_node a
    start_node b
    if [[ $scenario != *+quiet* ]]; then
        for node in a b; do
            # Until after the measured seconds; what it reaches is counted in the database, within them.
            "${on_load_core[@]}" "$LOAD_BIN" transitions --api "${http[$node]}" --token-file "$work/a/admin-token" --rate $((rate / 2)) \
                --rooms 500 --prefix "load-$node" --seconds $((seconds + 20)) --json "$results/$name-load-$node.json" \
                >"$work/load-$node.txt" 2>&1 &
            running[load-$node]=$!
        done
        await_changes a
        await_changes b
    fi
    "${on_load_core[@]}" "$work/nodes" --url "$url" --nodes "$node_count" --connections "${CONNECTIONS:-40}" --poll "$poll" \
        --seconds "$seconds" --warmup 5 --kinds "$kinds" --postmaster "$(head -n 1 "$work/postgres/cluster/data/postmaster.pid")" \
        --scrape "${SCRAPE:-0}" --watch "a=${running[a]}" --watch "b=${running[b]}" "${options[@]}" \
        >"$results/$name.json" 2>"$work/nodes.txt" &
    running[nodes]=$!
    tries=300
    until grep -qs measuring "$work/nodes.txt"; do
        if ((tries-- == 0)) || ! kill -0 "${running[nodes]}" 2>/dev/null; then
            cat "$work/nodes.txt" >&2
            exit 1
        fi
        sleep 0.1
    done
    for node in a b; do metrics "$node" >"$results/$name-before-$node.metrics"; done
    for part in {1..10}; do
        # A node that has no time for this answer is one sample less.
        for node in a b; do metrics "$node" | grep cluster_signal_lag_seconds >"$results/$name-lag-$node-$part.metrics" || true; done
        sleep "$((seconds / 15))"
    done
    wait "${running[nodes]}" || { cat "$work/nodes.txt" >&2; exit 1; }
    unset "running[nodes]"
    for node in a b; do metrics "$node" >"$results/$name-after-$node.metrics"; done
    if [[ $scenario != *+quiet* ]]; then
        for node in a b; do
            # One that failed says so in its figures.
            wait "${running[load-$node]}" || true
            unset "running[load-$node]"
        done
    fi
    stop_all
}

for number in $(seq "$rounds"); do
    for scenario in "${scenarios[@]}"; do round "$scenario" "$number"; done
done
python3 Benchmarks/Cluster/report.py "$results"
say "every figure is in $results"
