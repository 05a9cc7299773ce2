#!/usr/bin/env bash
# Measures earshot beside nginx-rtmp, each on one core, and prints the figures side by side. See README.md in this folder.
#
#   ROUNDS=3             rounds; in each, the servers take turns, and who goes first changes
#   QUICK=1              one short round, to see that everything works; its figures are not worth much
#   SCENARIOS="…"        only these, of: fanout-500x800k fanout-300x2M window-300x2M flv-300x2M hls-20 rooms-200 talk-1000
#                        idle-2000 join-1000 joined-1100 stall-500 stall-none
#   CAPACITY=0           without the search for how many viewers fit on a core
#   REQUESTS=0           without what a request of an HLS player costs
#   RTMP_PORT, HTTP_PORT where the servers listen on 127.0.0.1
#   EARSHOT_BIN, LOAD_BIN  binaries to use instead of a release build
#   SRS_BIN              SRS's binary, to measure it, too
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

work=$(mktemp -d)
servers=(earshot)
# Swift's toolchain brings clang with it.
cc=$(command -v cc || command -v clang || true)
if [[ -n $cc ]]; then
    "$cc" -O2 -o "$work/bare" Benchmarks/Bare/bare.c
    servers+=("bare C")
else
    say "there is no C compiler: the bare floor is not measured"
fi
nginx=$(PATH=$PATH:/usr/sbin command -v nginx || true)
module=${NGINX_RTMP_MODULE:-/usr/lib/nginx/modules/ngx_rtmp_module.so}
if [[ -n $nginx && -e $module ]]; then servers+=(nginx-rtmp); else say "nginx-rtmp is missing: it is not measured"; fi
if [[ -x ${SRS_BIN:-} ]]; then servers+=(SRS); elif [[ -n ${SRS_BIN:-} ]]; then fail "SRS_BIN: $SRS_BIN cannot be run"; fi
has() { local name; for name in "${servers[@]}"; do [[ $name != "$1" ]] || return 0; done; return 1; }

# The server on one core and the load on another; on one core alone the figures mix the two.
on_server_core=() on_load_core=()
if (($(nproc) >= 2)) && command -v taskset >/dev/null; then
    on_server_core=(taskset -c 0)
    on_load_core=(taskset -c 1)
else
    say "two cores and taskset are needed to keep server and load apart; going on without"
fi
say "load average $(cut -d ' ' -f 1-3 /proc/loadavg); other work on this machine shows in the figures"

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

# start NAME: sets `server` to what must be stopped and `measured` to the process whose CPU and memory count.
start() {
    case $1 in
    earshot | "earshot, FLV") start_earshot ;;
    "earshot, HLS") EARSHOT_HLS_ALWAYS=on start_earshot ;;
    "earshot, 100 ms") EARSHOT_RELAY_COALESCE=100ms start_earshot ;;
    "bare C") start_bare 0 ;;
    "bare C, 100 ms") start_bare 100 ;;
    nginx-rtmp) start_nginx ;;
    SRS) start_srs ;;
    esac
}

start_earshot() {
    # One address has all the viewers here, and nearly all the open files that there may be.
    EARSHOT_LIMITS_HTTP_CONNECTIONS=600 EARSHOT_LIMITS_CONNECTIONS=40000 EARSHOT_LIMITS_CONNECTIONS_PER_ADDRESS=40000 \
        EARSHOT_LIMITS_VIEWERS_PER_STREAM=40000 \
        "${on_server_core[@]}" "$EARSHOT_BIN" serve --rtmp "127.0.0.1:$rtmp_port" --http "127.0.0.1:$http_port" --data "$work/data" \
        >"$work/server.log" 2>&1 &
    server=$!
    wait_for_port
    measured=$server
}

start_bare() {
    "${on_server_core[@]}" "$work/bare" "$rtmp_port" "$1" >"$work/server.log" 2>&1 &
    server=$!
    wait_for_port
    measured=$server
}

start_nginx() {
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

# Its defaults, among them a chunk size of 60,000, cached pictures, and writes gathered for 350 ms.
start_srs() {
    local files
    files=$(ulimit -Hn)
    cat >"$work/srs.conf" <<CONF
listen 127.0.0.1:$rtmp_port;
max_connections $((files < 30500 ? files - 500 : 30000));
daemon off;
in_docker on;
pid $work/srs.pid;
srs_log_tank file;
srs_log_level_v2 error;
srs_log_file $work/server.log;
vhost __defaultVhost__ { }
CONF
    : >"$work/server.log"
    (cd "$work" && exec "${on_server_core[@]}" "$SRS_BIN" -c "$work/srs.conf") >>"$work/server.log" 2>&1 &
    server=$!
    wait_for_port
    measured=$server
}

wait_for_port() {
    local tries=100
    until (exec 3<>"/dev/tcp/127.0.0.1/$rtmp_port") 2>/dev/null; do
        if gone "$server" || ((tries-- == 0)); then fail "the server did not start" "$work/server.log"; fi
        sleep 0.1
    done
    sleep 0.5
}

# The load generator's arguments for each scenario, and the servers that it measures.
hd="--video-kbps 1936 --fps 30 --gop 60 --audio-kbps 64"
small="--video-kbps 136 --fps 25 --gop 50 --audio-kbps 64"
steady="--seconds $seconds --warmup $warmup"
arguments() {
    case $1 in
    fanout-500x800k) echo "--mode fanout --viewers 500 --video-kbps 736 --fps 25 --gop 50 --audio-kbps 64 $steady" ;;
    hls-20) echo "--mode fanout --rooms 20 --viewers 1 $hd $steady" ;;
    fanout-300x2M | window-300x2M | flv-300x2M) echo "--mode fanout --viewers 300 $hd $steady" ;;
    rooms-200) echo "--mode fanout --rooms 200 --viewers 1 $small $steady" ;;
    talk-1000) echo "--mode fanout --viewers 1000 --video-kbps 0 --audio-kbps 40 $steady" ;;
    idle-2000) echo "--mode idle --viewers 2000 --seconds 3" ;;
    join-1000) echo "--mode join --viewers 1000 --players 100 $hd --join-interval-us 1000 --seconds 5 --warmup 1" ;;
    # The load around the players of join-1000 at its end.
    joined-1100) echo "--mode fanout --viewers 1100 $hd $steady" ;;
    # Longer than a viewer that has stopped may keep up: the server must have decided about it.
    stall-500) echo "--mode stall --viewers 500 --stalled 50 --video-kbps 736 --fps 25 --gop 50 --audio-kbps 64 --seconds $((seconds + 5)) --warmup $warmup" ;;
    stall-none) echo "--mode fanout --viewers 450 --video-kbps 736 --fps 25 --gop 50 --audio-kbps 64 --seconds $((seconds + 5)) --warmup $warmup" ;;
    *) fail "there is no scenario \"$1\"" ;;
    esac
}
contenders() {
    case $1 in
    window-300x2M) printf '%s\n' "earshot, 100 ms" "bare C, 100 ms" ;;
    flv-300x2M) printf '%s\n' earshot "earshot, FLV" ;;
    hls-20) printf '%s\n' earshot "earshot, HLS" ;;
    idle-2000 | join-1000 | stall-500) printf '%s\n' earshot nginx-rtmp SRS ;;
    joined-1100 | stall-none) printf '%s\n' earshot ;;
    *) printf '%s\n' earshot "bare C" nginx-rtmp SRS ;;
    esac
}

results=Benchmarks/results/$(date -u +%Y%m%dT%H%M%SZ)
mkdir -p "$results"
files=()
# measure SCENARIO SERVER ROUND OPTIONS…: one run. Its result is 2 when the viewers were not served as --max-behind-ms demands.
measure() {
    local scenario=$1 name=$2 round=$3 file code=0
    shift 3
    file=$results/$scenario.${name//[ ,]/}.$round.json
    say "round $round/$rounds  $scenario  $name"
    start "$name"
    [[ $name != "earshot, FLV" ]] || set -- "$@" --http-port "$http_port"
    "${on_load_core[@]}" "$LOAD_BIN" run --url "rtmp://127.0.0.1:$rtmp_port/live" --server "$name" --server-pid "$measured" \
        --scenario "$scenario" --json "$file" "$@" >"$work/load.log" 2>&1 &
    load=$!
    wait "$load" || code=$?
    load=''
    [[ $code == 0 || $code == 2 ]] || fail "the load generator failed" "$work/load.log"
    cat "$work/load.log" >>"$results/runs.txt"
    echo >>"$results/runs.txt"
    stop "$server"
    server=''
    files+=("$file")
    return "$code"
}

for ((round = 1; round <= rounds; round++)); do
    for scenario in ${SCENARIOS-fanout-500x800k fanout-300x2M window-300x2M flv-300x2M hls-20 rooms-200 talk-1000 idle-2000 join-1000 joined-1100 stall-500 stall-none}; do
        order=()
        while read -r name; do
            has "${name%%,*}" || continue
            if ((round % 2)); then order+=("$name"); else order=("$name" "${order[@]}"); fi
        done < <(contenders "$scenario")
        options=$(arguments "$scenario")
        for name in "${order[@]}"; do
            # shellcheck disable=SC2086 # the options are words
            measure "$scenario" "$name" "$round" $options
        done
    done
done

# How many viewers of 200 kbit/s the rival carries before one of them is a second behind, and how earshot does with six times as many, with a
# tenth of that, and on the way there.
if [[ ${CAPACITY:-1} == 1 && ${QUICK:-} != 1 ]] && has nginx-rtmp; then
    served() { # served SCENARIO SERVER VIEWERS
        # shellcheck disable=SC2086
        # Joins as far apart as a nearly full core can start them: each costs two seconds of pictures.
        measure "$1" "$2" 1 --mode fanout --viewers "$3" $small --seconds 8 --warmup 8 --join-interval-us 2500 --max-behind-ms 1000
    }
    # As far as the open files go, of which server and load generator need one a viewer each, and as the load generator goes.
    most=$(ulimit -Hn)
    [[ $most =~ ^[0-9]+$ ]] || most=1000000
    most=$((most - 500 < 25000 ? most - 500 : 25000))
    probed() { # probed VIEWERS: whether the rival serves so many
        local code=0
        served "capacity-probe-$1" nginx-rtmp "$1" || code=$?
        unset 'files[-1]'
        return "$code"
    }
    low=${CAPACITY_FROM:-1000} high=${CAPACITY_TO:-5000}
    until probed "$low" || ((low <= 100)); do high=$low low=$((low / 2)); done
    while ((high < most)) && probed "$high"; do low=$high high=$((high * 3 / 2 < most ? high * 3 / 2 : most)); done
    while ((high - low > 200)); do
        middle=$(((low + high) / 2))
        if probed "$middle"; then low=$middle; else high=$middle; fi
    done
    say "nginx-rtmp carries $low viewers of 200 kbit/s"
    echo "$low" >"$results/capacity-nginx-rtmp.txt"
    served capacity-1x nginx-rtmp "$low" || true
    points=" "
    for tenths in 60 6 10 20 30 40 50; do
        viewers=$((low * tenths / 10)) point=curve-$((tenths / 10))x
        ((tenths != 6)) || point=capacity-0.6x
        ((tenths != 60)) || point=capacity-6x
        if ((viewers > most)); then
            point=capacity-$(awk -v viewers="$most" -v low="$low" 'BEGIN { printf "%.1f", viewers / low }')x
            say "$viewers viewers are more than can be had here (ulimit -Hn, and 25,000 of the load generator): $most, as $point"
            viewers=$most
        fi
        [[ $points != *" $viewers "* ]] || continue
        points+="$viewers "
        served "$point" earshot "$viewers" || true
    done
fi

echo "Medians of $rounds round(s) [least … most]; server on one core, load generator on another; every figure in $results"
code=0
"$LOAD_BIN" compare --svg "$results/chart.svg" "$@" "${files[@]}" | tee "$results/table.txt" || code=$?
if [[ ${REQUESTS:-1} == 1 && ! (-n $nginx && -x $(command -v wrk)) ]]; then
    say "nginx or wrk is missing: what a request of an HLS player costs is not measured"
elif [[ ${REQUESTS:-1} == 1 ]]; then
    echo
    ROUNDS=$rounds SECONDS_MEASURED=$((seconds < 6 ? 2 : 6)) EARSHOT_BIN=$EARSHOT_BIN Benchmarks/requests.sh "$@" | tee "$results/requests.txt" || code=$?
fi
exit "$code"
