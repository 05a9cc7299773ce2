#!/usr/bin/env bash
# What a request of an HLS player costs, beside nginx that serves the same bytes from memory. See README.md in this folder.
#
#   ROUNDS=3       rounds; the servers take turns
#   SECONDS_MEASURED=6  length of each run
#   EARSHOT_BIN    a binary to use instead of a release build
# With --strict: exit code 1 when a target is missed.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf 'bench: %s\n' "$*" >&2; }
for tool in curl ffmpeg taskset wrk; do
    command -v "$tool" >/dev/null || { say "needs $tool: apt-get install curl ffmpeg util-linux wrk"; exit 1; }
done
nginx=$(PATH=$PATH:/usr/sbin command -v nginx) || { say "needs nginx: apt-get install nginx-light"; exit 1; }
rounds=${ROUNDS:-3} seconds=${SECONDS_MEASURED:-6}
EARSHOT_BIN=${EARSHOT_BIN:-$(scripts/build.sh release earshot)/earshot}
work=$(mktemp -d)
pids=()
cleanup() {
    local pid
    # One of them is stopped.
    for pid in "${pids[@]}"; do
        kill "$pid" 2>/dev/null || true
        kill -CONT "$pid" 2>/dev/null || true
    done
    wait
    rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

# Microseconds of CPU that a process's threads have used.
used() { awk '{ sum += $1 } END { printf "%d", sum / 1000 }' /proc/"$1"/task/*/schedstat; }

# run NAME PID URL: adds a line "NAME<tab>µs a request".
run() {
    local before after count
    before=$(used "$2")
    taskset -c 1 wrk -t 1 -c 100 -d "${seconds}s" "$3" >"$work/wrk"
    after=$(used "$2")
    if grep -q 'Non-2xx\|Socket errors' "$work/wrk"; then
        say "$1: $(grep 'Non-2xx\|Socket errors' "$work/wrk")"
        exit 1
    fi
    count=$(awk '/requests in/ { print $1 }' "$work/wrk")
    awk -v name="$1" -v us=$((after - before)) -v n="$count" 'BEGIN { printf "%s\t%.1f\n", name, us / n }' | tee -a "$work/figures"
}

say "a minute of 720p at 1.9 Mbit/s"
ffmpeg -v error -f lavfi -i testsrc2=size=1280x720:rate=25 -f lavfi -i sine=440:sample_rate=48000 -t 60 -c:v libx264 -preset ultrafast \
    -g 50 -bf 0 -b:v 1800k -minrate 1800k -maxrate 1800k -bufsize 450k -x264-params nal-hrd=cbr -c:a aac -b:a 96k -f flv "$work/source.flv"
EARSHOT_LIMITS_HTTP_CONNECTIONS=600 EARSHOT_LIMITS_HTTP_PER_ADDRESS=600 EARSHOT_HLS_WINDOW=10m EARSHOT_HLS_ALWAYS=on taskset -c 0 \
    "$EARSHOT_BIN" serve --rtmp 127.0.0.1:0 --http 127.0.0.1:0 --data "$work/data" >"$work/server.log" 2>&1 &
server=$!
pids+=("$server")
for _ in {1..100}; do
    grep -q 'Stop with' "$work/server.log" && break
    sleep 0.1
done
rtmp=$(grep -oE 'rtmp://[^/ ]+:[0-9]+' "$work/server.log" | head -n 1)
http=$(grep -oE 'http://[^/ ]+:[0-9]+' "$work/server.log" | head -n 1)
# Fast, so that nothing is pushed while requests are measured; the stream stays for its grace.
ffmpeg -v error -readrate 8 -i "$work/source.flv" -c copy -f flv "$rtmp/live/cam" &
push=$!
pids+=("$push")
media=''
for _ in {1..50}; do
    media=$(curl -s "$http/live/cam.m3u8" | grep -v '^#' | head -n 1 || true)
    [[ -z $media ]] || break
    sleep 0.2
done
sleep 4
list=$(curl -s "$http/live/$media")
base=$http/live/cam.hls
part=$base/$(grep -o '#EXT-X-PART:.*URI="[^"]*' <<<"$list" | sed 's/.*URI="//' | sed -n '2p')
segment=$base/$(grep -v '^#' <<<"$list" | tail -n 1)
curl -sf "$part" >"$work/part.m4s"
curl -sf "$segment" >"$work/segment.m4s"
say "a part of $(stat -c %s "$work/part.m4s") bytes, a segment of $(stat -c %s "$work/segment.m4s")"

cat >"$work/nginx.conf" <<CONF
$([[ $(id -u) != 0 ]] || echo "user root;")
worker_processes 1;
daemon off;
pid $work/nginx.pid;
error_log $work/nginx.log warn;
events { worker_connections 1024; }
http {
    access_log off;
    sendfile off;
    output_buffers 2 1m;
    keepalive_requests 1000000000;
    open_file_cache max=10;
    server { listen 127.0.0.1:${HTTP_PORT:-21980}; root $work; }
}
CONF
taskset -c 0 "$nginx" -e "$work/nginx.log" -c "$work/nginx.conf" &
pids+=("$!")
sleep 1
worker=$(cut -d ' ' -f 1 "/proc/$!/task/$!/children")
beside=http://127.0.0.1:${HTTP_PORT:-21980}
kill -STOP "$push"
for ((round = 1; round <= rounds; round++)); do
    say "round $round of $rounds"
    run "part, earshot" "$server" "$part"
    run "part, nginx" "$worker" "$beside/part.m4s"
    run "segment, nginx" "$worker" "$beside/segment.m4s"
    run "segment, earshot" "$server" "$segment"
done
printf '\nmedians, µs of CPU a request\n'
sort -t $'\t' -k 1,1 -k 2,2n "$work/figures" | awk -F '\t' -v strict="$([[ ${1:-} == --strict ]] && echo 1 || echo 0)" '
    { if ($1 != name && name != "") show(); if ($1 != name) { name = $1; n = 0 } values[n++] = $2 }
    function show() { median[name] = values[int((n - 1) / 2)]; printf "%s\t%s [%s … %s]\n", name, median[name], values[0], values[n - 1] }
    END {
        show()
        part = median["part, earshot"] / median["part, nginx"]
        segment = median["segment, earshot"] / median["segment, nginx"]
        printf "part: %.2f × nginx (target 1.5); segment: %.2f × nginx (target 1.3)\n", part, segment
        exit strict && (part > 1.5 || segment > 1.3)
    }'
