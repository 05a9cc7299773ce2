#!/usr/bin/env bash
# More viewers than a server can carry: earshot and nginx-rtmp on a quarter of a core, offered as many as they carry, half as many again and
# twice as many. See README.md in this folder.
#
#   QUICK=1              short: its figures show only that everything works
#   SERVERS="earshot nginx-rtmp"
#   EARSHOT_BIN, LOAD_BIN  binaries to use instead of a release build
#   RTMP_PORT, HTTP_PORT where the servers listen on 127.0.0.1
# Arguments go to `earshot-load overload`.
#
# A quarter: control group cpu shares of 1 to 3 against a program that does nothing, on one core. Where control groups cannot be made, nice
# values are used whose weights are 1 to 3 (nice 5 against 0: 335 to 1024).
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf 'bench: %s\n' "$*" >&2; }
rtmp_port=${RTMP_PORT:-21935} http_port=${HTTP_PORT:-21980}
times=(--settle 15 --seconds 10)
[[ ${QUICK:-} != 1 ]] || times=(--settle 8 --seconds 4 --most 6000)
if [[ -z ${EARSHOT_BIN:-} || -z ${LOAD_BIN:-} ]]; then
    bin=$(scripts/build.sh release earshot earshot-load)
    EARSHOT_BIN=${EARSHOT_BIN:-$bin/earshot}
    LOAD_BIN=${LOAD_BIN:-$bin/earshot-load}
fi
if (($(nproc) < 2)) || ! command -v taskset >/dev/null; then
    say "needs two cores and taskset"
    exit 1
fi
nginx=$(PATH=$PATH:/usr/sbin command -v nginx || true)
module=${NGINX_RTMP_MODULE:-/usr/lib/nginx/modules/ngx_rtmp_module.so}

work=$(mktemp -d)
server='' busy='' group=''
end() { # PID
    [[ -n $1 ]] || return 0
    kill "$1" 2>/dev/null || true
    for _ in {1..80}; do kill -0 "$1" 2>/dev/null || break; sleep 0.1; done
    kill -9 "$1" 2>/dev/null || true
    wait "$1" 2>/dev/null || true
}
cleanup() {
    trap '' INT TERM
    end "$server"
    end "$busy"
    if [[ -n $group ]]; then rmdir "$group"/{server,busy,load} "$group" 2>/dev/null || true; fi
    rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

# share NAME COMMAND…: becomes the command, as "server" with one share or as "busy" with three, on core 0; as "load", on core 1.
share() {
    local name=$1 core=0
    shift
    [[ $name != load ]] || core=1
    if [[ -n $group ]]; then
        echo "$BASHPID" >"$group/$name/cgroup.procs"
    elif [[ $name == server ]]; then
        set -- nice -n 5 "$@"
    fi
    exec taskset -c "$core" "$@"
}
for root in /sys/fs/cgroup/cpu /sys/fs/cgroup; do
    [[ -z $group ]] || break
    candidate=$root/earshot-overload-$$
    mkdir "$candidate" 2>/dev/null || continue
    if [[ -e $candidate/cpu.shares ]] || { echo +cpu >"$candidate/cgroup.subtree_control"; } 2>/dev/null; then
        group=$candidate
        mkdir "$group/server" "$group/busy" "$group/load"
        # Above what else runs on the machine.
        if [[ -e $group/server/cpu.shares ]]; then
            echo 20480 >"$group/cpu.shares"
            echo 256 >"$group/server/cpu.shares"
            echo 768 >"$group/busy/cpu.shares"
        else
            echo 2000 >"$group/cpu.weight"
            echo 100 >"$group/server/cpu.weight"
            echo 300 >"$group/busy/cpu.weight"
        fi
    else
        rmdir "$candidate"
    fi
done
say "a quarter of core 0 by ${group:+control group shares}${group:-nice values}"

(share busy bash -c 'while :; do :; done') &
busy=$!

start() { # NAME
    case $1 in
    earshot)
        (
            export EARSHOT_LIMITS_HTTP_CONNECTIONS=600 EARSHOT_LIMITS_CONNECTIONS=40000 EARSHOT_LIMITS_CONNECTIONS_PER_ADDRESS=40000
            export EARSHOT_LIMITS_VIEWERS_PER_STREAM=40000
            share server "$EARSHOT_BIN" serve --rtmp "127.0.0.1:$rtmp_port" --http "127.0.0.1:$http_port" --data "$work/data"
        ) >"$work/server.log" 2>&1 &
        ;;
    nginx-rtmp)
        cat >"$work/nginx.conf" <<CONF
load_module $module;
$([[ $(id -u) != 0 ]] || echo "user root;")
worker_processes 1;
worker_rlimit_nofile $(ulimit -Hn);
daemon off;
pid $work/nginx.pid;
error_log $work/server.log warn;
events { worker_connections 16384; }
rtmp { access_log off; server { listen 127.0.0.1:$rtmp_port; chunk_size 60000; application live { live on; drop_idle_publisher off; } } }
CONF
        : >"$work/server.log"
        # shellcheck disable=SC2094 # nginx only appends
        (share server "$nginx" -e "$work/server.log" -p "$work" -c "$work/nginx.conf") >>"$work/server.log" 2>&1 &
        ;;
    esac
    server=$!
    for _ in {1..200}; do
        if (exec 3<>"/dev/tcp/127.0.0.1/$rtmp_port") 2>/dev/null; then break; fi
        sleep 0.1
    done
    sleep 1
}

results=Benchmarks/results/overload-$(date -u +%Y%m%dT%H%M%SZ)
mkdir -p "$results"
for name in ${SERVERS:-earshot nginx-rtmp}; do
    if [[ $name == nginx-rtmp ]] && { [[ -z $nginx ]] || [[ ! -e $module ]]; }; then
        say "nginx-rtmp is missing: it is not measured"
        continue
    fi
    start "$name"
    # nginx-rtmp is late by more than the limit as soon as 200 viewers a second join.
    ramp=5000
    [[ $name != nginx-rtmp ]] || ramp=20000
    (share load "$LOAD_BIN" overload --url "rtmp://127.0.0.1:$rtmp_port/live" --server "$name" --json "$results/$name.json" \
        --ramp-interval-us "$ramp" "${times[@]}" "$@") | tee -a "$results/table.txt" || say "the load generator failed for $name"
    cp "$work/server.log" "$results/$name.log"
    end "$server"
    server=''
done
