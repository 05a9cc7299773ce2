#!/usr/bin/env bash
# The cost of talk on one core: rooms of four talkers each (ffmpeg sends recorded tones in real time), listeners by rtmpdump. CPU of the
# server, encodes, underruns. Before that, how long a voice takes through a server. See README.md in this folder.
#
#   DELAY=0              leaves that out, which needs a debug build with the tests
#   SECONDS_MEASURED=20  of each part; the last one, of many rooms, takes LONG seconds (60; 600 for the ten minutes)
#   EARSHOT_BIN          binary to use instead of a release build
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf 'bench: %s\n' "$*" >&2; }
for tool in ffmpeg rtmpdump python3; do
    command -v "$tool" >/dev/null || { say "needs $tool: make test installs it"; exit 1; }
done
seconds=${SECONDS_MEASURED:-20} long=${LONG:-60}
EARSHOT_BIN=${EARSHOT_BIN:-$(scripts/build.sh release earshot)/earshot}
# By the client that the tests have, alone: clicks, timed from the message that brings one to the message that takes it on.
if [[ ${DELAY:-1} != 0 ]]; then
    say "delay of clicks"
    Benchmarks/measure.sh TalkDelayMeasurement
fi
on_server_core=() on_load_core=()
if (($(nproc) >= 2)) && command -v taskset >/dev/null; then
    on_server_core=(taskset -c 0)
    on_load_core=(taskset -c 1)
fi
work=$(mktemp -d)
server=''
clients=()
end_clients() {
    ((${#clients[@]})) || return 0
    kill "${clients[@]}" 2>/dev/null || true
    wait "${clients[@]}" 2>/dev/null || true
    clients=()
}
trap 'end_clients; [[ -z $server ]] || kill "$server" 2>/dev/null; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

for tone in 300 500 800 1300; do
    # Long enough not to be begun again: what is missing between the end and the beginning would count as a gap.
    ffmpeg -v error -f lavfi -i "sine=$tone:r=48000" -t $((long + 4 * seconds + 120)) -ac 1 -c:a aac -b:a 64k "$work/$tone.flv"
done
# As long: eight cameras that begin anew at once keep all clients of their core waiting.
ffmpeg -v error -f lavfi -i testsrc=s=160x90:r=5 -t $((long + 4 * seconds + 120)) -c:v libx264 -preset ultrafast -g 5 "$work/camera.flv"

EARSHOT_TALK_LISTENERS=1000 "${on_server_core[@]}" "$EARSHOT_BIN" serve --rtmp 127.0.0.1:0 --http 127.0.0.1:0 --data "$work/data" \
    >"$work/server.log" 2>&1 &
server=$!
for _ in {1..100}; do
    grep -q 'Stop with' "$work/server.log" && break
    sleep 0.1
done
rtmp=$(grep -oE 'rtmp://[^/ ]+:[0-9]+' "$work/server.log" | head -n 1)
http=$(grep -oE 'http://[^/ ]+:[0-9]+' "$work/server.log" | head -n 1)

push() { # FILE NAME
    "${on_load_core[@]}" ffmpeg -v error -re -stream_loop -1 -i "$work/$1.flv" -c copy -f flv "$rtmp/$2" 2>>"$work/clients.log" &
    clients+=($!)
}
listen() { # NAME
    "${on_load_core[@]}" rtmpdump -q -v --live -r "$rtmp/$1" -o /dev/null 2>>"$work/clients.log" &
    clients+=($!)
}
rooms_up() { # COUNT: rooms with four talkers each
    for room in $(seq "$1"); do push camera "live/room$room"; done
    sleep 3
    for room in $(seq "$1"); do
        for tone in 300 500 800 1300; do push "$tone" "talk/room$room/t$tone"; done
    done
    sleep 6
}
# A clock on the clients' core, which tells when that stood still: senders do then, too, and no server can make up for what was not sent.
watch_load_core() { # writes a line for each stop: seconds since 1970, and for how many milliseconds
    "${on_load_core[@]}" python3 -u -c 'import time
while True:
    before = time.monotonic()
    time.sleep(0.002)
    late = (time.monotonic() - before - 0.002) * 1000
    if late > 15: print("%.3f %.0f" % (time.time(), late))' >"$work/stops" &
    clients+=($!)
}
# One process asks for every figure, on the clients' core and in turn: to start others while talk runs would keep the senders waiting.
measure() { # LABEL ROOMS SECONDS
    "${on_load_core[@]}" python3 - "$http" "$work/data/admin-token" "$server" "$work/stops" "$@" <<'END'
import json, os, sys, time, urllib.request
url, token, server, stops, label = sys.argv[1:6]
rooms, seconds, token = int(sys.argv[6]), float(sys.argv[7]), open(token).read().strip()

def figures():
    encodes = underruns = 0
    for room in range(1, rooms + 1):
        request = urllib.request.Request("%s/api/v1/rooms/room%d/talk" % (url, room), headers={"Authorization": "Bearer " + token})
        channel = json.load(urllib.request.urlopen(request))["data"]
        encodes += channel["encodes"]
        underruns += sum(member["underruns"] for member in channel["members"])
    return encodes, underruns

def cpu():
    fields = open("/proc/%s/stat" % server).read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

figures()
time.sleep(3)
began, used, first = time.time(), cpu(), figures()
last, moments = first, []
while time.time() < began + seconds:
    time.sleep(max(0, min(1, began + seconds - time.time())))
    now = figures()
    if now[1] != last[1]: moments.append((time.time(), now[1] - last[1]))
    last = now
lasted = time.time() - began
print("%-38s %6.1f %% of a core  %7.1f encodes/s  %d underruns" %
      (label, (cpu() - used) / lasted * 100, (last[0] - first[0]) / lasted, last[1] - first[1]), flush=True)
if os.path.exists(stops):
    stood = [tuple(map(float, line.split())) for line in open(stops)]
    say = lambda line: print("bench: " + line, file=sys.stderr)
    say("the clients' core stood still for over 15 ms %d times, at most for %.0f ms" % (len(stood), max([ms for _, ms in stood] or [0])))
    for at, count in moments:
        near = [ms for when, ms in stood if at - 2.5 <= when <= at + 0.5]
        say("%d underruns after %.0f s; the clients' core stood still for %s" % (count, at - began, "%.0f ms" % max(near) if near else "no time"))
END
}

say "one room of four talkers"
rooms_up 1
measure "4 talkers, nobody listens" 1 "$seconds"
for index in $(seq 5); do listen "talk/room1/mix-l$index"; done
sleep 3
measure "4 talkers, 5 listeners" 1 "$seconds"
for index in $(seq 6 20); do listen "talk/room1/mix-l$index"; done
sleep 3
measure "4 talkers, 20 listeners" 1 "$seconds"
for index in $(seq 21 50); do listen "talk/room1/mix-l$index"; done
sleep 3
measure "4 talkers, 50 listeners" 1 "$seconds"
end_clients
sleep 5
say "eight rooms of four talkers, each of whom listens"
rooms_up 8
for room in $(seq 8); do
    for tone in 300 500 800 1300; do listen "talk/room$room/mix-t$tone"; done
done
sleep 5
watch_load_core
measure "8 rooms, 32 talkers that listen" 8 "$long"
[[ ! -s $work/clients.log ]] || { say "what clients said:"; sort "$work/clients.log" | uniq -c | head -5 >&2; }
