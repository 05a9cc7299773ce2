#!/usr/bin/env bash
# Measures earshot beside nginx-rtmp, each on one core, and prints the figures side by side. See README.md in this folder.
#
#   ROUNDS=3             rounds; in each, the servers take turns, and who goes first changes
#   QUICK=1              one short round, to see that everything works; its figures are not worth much
#   SCENARIOS="…"        only these, of: fanout-500x2M fanout-500x800k idle-2000 join-500 stall-100
#   RTMP_PORT, HTTP_PORT where the servers listen on 127.0.0.1
#   EARSHOT_BIN, LOAD_BIN  binaries to use instead of a release build
# Arguments go to `earshot-load compare`, for example --strict.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf 'bench: %s\n' "$*" >&2; }
fail() {
    say "$1"
    if [[ -n ${2:-} && -s $2 ]]; then tail -n 15 "$2" >&2; fi
    exit 1
}

rounds=${ROUNDS:-3} seconds=15 warmup=3
if [[ ${QUICK:-} == 1 ]]; then rounds=1 seconds=4 warmup=1; fi
[[ $rounds =~ ^[1-9][0-9]?$ ]] || fail "ROUNDS must be 1 to 99, not \"$rounds\""
rtmp_port=${RTMP_PORT:-21935} http_port=${HTTP_PORT:-21980}

if [[ -z ${EARSHOT_BIN:-} || -z ${LOAD_BIN:-} ]]; then
    bin=$(scripts/build.sh release earshot earshot-load)
    EARSHOT_BIN=${EARSHOT_BIN:-$bin/earshot}
    LOAD_BIN=${LOAD_BIN:-$bin/earshot-load}
fi

nginx=$(PATH=$PATH:/usr/sbin command -v nginx || true)
module=${NGINX_RTMP_MODULE:-/usr/lib/nginx/modules/ngx_rtmp_module.so}
servers=(earshot)
if [[ -n $nginx && -e $module ]]; then servers+=(nginx-rtmp); else say "nginx-rtmp is missing: earshot alone is measured"; fi

# The server on one core and the load on another; on one core alone the figures mix the two.
on_server_core=() on_load_core=()
if (($(nproc) >= 2)) && command -v taskset >/dev/null; then
    on_server_core=(taskset -c 0)
    on_load_core=(taskset -c 1)
else
    say "two cores and taskset are needed to keep server and load apart; going on without"
fi
say "load average $(cut -d ' ' -f 1-3 /proc/loadavg); other work on this machine shows in the figures"

work=$(mktemp -d)
server='' load=''
gone() { [[ -z $1 ]] || ! kill -0 "$1" 2>/dev/null; }
# stop PID: asks it to end, and makes it after 8 s.
stop() {
    local tries=80
    gone "$1" || kill "$1" 2>/dev/null || true
    until gone "$1"; do
        if ((tries-- == 0)); then kill -9 "$1" 2>/dev/null || true; fi
        sleep 0.1
    done
    [[ -z $1 ]] || wait "$1" 2>/dev/null || true
}
cleanup() {
    trap '' INT TERM
    stop "$load"
    stop "$server"
    rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

# Sets `server` to what must be stopped and `measured` to the process whose CPU and memory count.
start_earshot() {
    "${on_server_core[@]}" "$EARSHOT_BIN" serve --rtmp "127.0.0.1:$rtmp_port" --http "127.0.0.1:$http_port" --data "$work/data" \
        >"$work/server.log" 2>&1 &
    server=$!
    wait_for_port
    measured=$server
}

start_nginx-rtmp() {
    cat >"$work/nginx.conf" <<CONF
load_module $module;
$([[ $(id -u) != 0 ]] || echo "user root;")
worker_processes 1;
worker_rlimit_nofile $(ulimit -Hn);
daemon off;
pid $work/nginx.pid;
error_log $work/server.log warn;
events { worker_connections 16384; }
rtmp {
    access_log off;
    server {
        listen 127.0.0.1:$rtmp_port;
        chunk_size 60000;
        application live {
            live on;
            drop_idle_publisher off;
        }
    }
}
CONF
    : >"$work/server.log"
    # shellcheck disable=SC2094 # nginx only appends
    "${on_server_core[@]}" "$nginx" -e "$work/server.log" -p "$work" -c "$work/nginx.conf" >>"$work/server.log" 2>&1 &
    server=$!
    wait_for_port
    # The work is done by the one worker.
    measured=$(cut -d ' ' -f 1 "/proc/$server/task/$server/children")
    [[ -n $measured ]] || fail "nginx has no worker" "$work/server.log"
}

wait_for_port() {
    local tries=100
    until (exec 3<>"/dev/tcp/127.0.0.1/$rtmp_port") 2>/dev/null; do
        if gone "$server" || ((tries-- == 0)); then fail "the server did not start" "$work/server.log"; fi
        sleep 0.1
    done
    sleep 0.5
}

arguments() {
    local hd="--video-kbps 1936 --fps 30 --gop 60 --audio-kbps 64"
    case $1 in
    fanout-500x2M) echo "--mode fanout --viewers 500 $hd --seconds $seconds --warmup $warmup" ;;
    fanout-500x800k) echo "--mode fanout --viewers 500 --video-kbps 736 --fps 25 --gop 50 --audio-kbps 64 --seconds $seconds --warmup $warmup" ;;
    idle-2000) echo "--mode idle --viewers 2000 --seconds 3" ;;
    join-500) echo "--mode join --viewers 500 $hd --join-interval-us 1000 --seconds 1 --warmup 1" ;;
    # Longer than a viewer that has stopped may keep up: the server must have decided about it.
    stall-100) echo "--mode stall --viewers 100 --stalled 20 $hd --seconds $((seconds + 5)) --warmup $warmup" ;;
    *) fail "there is no scenario \"$1\"" ;;
    esac
}

results=Benchmarks/results/$(date -u +%Y%m%dT%H%M%SZ)
mkdir -p "$results"
files=()
measure() {
    local scenario=$1 name=$2 round=$3 options file
    options=$(arguments "$scenario")
    file=$results/$scenario.$name.$round.json
    say "round $round/$rounds  $scenario  $name"
    "start_$name"
    # shellcheck disable=SC2086 # the options are words
    "${on_load_core[@]}" "$LOAD_BIN" run --url "rtmp://127.0.0.1:$rtmp_port/live" --server "$name" --server-pid "$measured" \
        --scenario "$scenario" --json "$file" $options >"$work/load.log" 2>&1 &
    load=$!
    wait "$load" || fail "the load generator failed" "$work/load.log"
    load=''
    cat "$work/load.log" >>"$results/runs.txt"
    echo >>"$results/runs.txt"
    stop "$server"
    server=''
    files+=("$file")
}

for ((round = 1; round <= rounds; round++)); do
    order=("${servers[@]}")
    if ((round % 2 == 0 && ${#servers[@]} == 2)); then order=("${servers[1]}" "${servers[0]}"); fi
    for scenario in ${SCENARIOS:-fanout-500x2M fanout-500x800k idle-2000 join-500 stall-100}; do
        for name in "${order[@]}"; do measure "$scenario" "$name" "$round"; done
    done
done

echo "Medians of $rounds round(s) [least … most]; server on one core, load generator on another; every figure in $results"
"$LOAD_BIN" compare "$@" "${files[@]}" | tee "$results/table.txt"
