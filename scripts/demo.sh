#!/usr/bin/env bash
# A server, an ffmpeg test pattern that stands for a device, and a player that reports what it decodes. After 20 s the player ends, and
# the picture goes on in the console until Ctrl-C; with DEMO_SECONDS everything ends then by itself. Exits 0 when pictures arrived.
# DEMO_BIN: the folder of a program that is built already.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${DEMO_SECONDS:-20}
ends_itself=${DEMO_SECONDS:-}
if ! [[ $seconds =~ ^[1-9][0-9]{0,4}$ ]]; then
    echo "demo: DEMO_SECONDS must be a whole number of seconds, not \"$seconds\"" >&2
    exit 2
fi

scripts/packages.sh demo
bin=${DEMO_BIN:-$(scripts/build.sh release earshot)}

work=$(mktemp -d)
server='' player='' publisher='' reporter='' stopped=''
# Background jobs of a script do not get the terminal's Ctrl-C: they end here, in order, each by its own id.
gone() { [[ -z $1 ]] || ! kill -0 "$1" 2>/dev/null; }
# stop PID: asks it to end, and makes it after 6 s (the server takes up to 5).
stop() {
    local tries=60
    gone "$1" || kill "$1" 2>/dev/null || true
    until gone "$1"; do
        if ((tries-- == 0)); then kill -9 "$1" 2>/dev/null || true; fi
        sleep 0.1
    done
}
cleanup() {
    trap '' INT TERM
    stop "$publisher"
    stop "$player"
    stop "$server"
    stop "$reporter"
    rm -rf "$work"
}
trap cleanup EXIT
trap 'stopped=1' INT TERM

fail() {
    echo "demo: $1" >&2
    if [[ -s $2 ]]; then tail -n 15 "$2" >&2; fi
    exit 1
}

# wait_for SECONDS COMMAND…: until the command succeeds.
wait_for() {
    local end=$((SECONDS + $1))
    shift
    until "$@" 2>/dev/null; do
        if ((SECONDS >= end)) || [[ -n $stopped ]]; then return 1; fi
        sleep 0.1
    done
}

# --- The server, on ports that the system chooses; its banner names them.
EARSHOT_APPS_DEMO=true "$bin/earshot" serve --rtmp 127.0.0.1:0 --http 127.0.0.1:0 --data "$work/data" >"$work/banner" 2>"$work/server.log" &
server=$!
healthy() {
    rtmp=$(grep -oE 'rtmp://[^/ ]+:[0-9]+' "$work/banner" | head -n 1)
    http=$(grep -oE 'http://[^/ ]+:[0-9]+' "$work/banner" | head -n 1)
    [[ -n $rtmp && -n $http ]] && curl -fsS --max-time 2 -o "$work/health" "$http/healthz"
}
ready() { healthy || gone "$server"; }
wait_for 20 ready || true
if gone "$server" || [[ ! -s $work/health ]]; then
    [[ -s $work/server.log ]] || cp "$work/banner" "$work/server.log"
    fail "the server did not start" "$work/server.log"
fi
url=$rtmp/live/demo
# With the room's page behind the code: its picture moves.
console="$(sed -n 's/^ *console //p' "$work/banner")&page=/rooms/demo"
echo "demo: server  $rtmp  $http"
echo "demo: console $console"
echo "demo: apps    $http/mesh/  $http/demo/class  $http/demo/machine?host=1"

# --- The player: decodes everything; showinfo and ashowinfo write a line for each frame of video and audio.
mkfifo "$work/frames"
report() {
    local line frames=0 samples=0 size=- last=0 next=3
    SECONDS=0
    tell() {
        local fps=$(((frames - last) / 3))
        last=$frames
        echo "demo: player  $frames frames ($fps fps, $size), $samples audio samples decoded"
    }
    while IFS= read -r line; do
        case $line in
        *Parsed_showinfo*\ n:*)
            frames=$((frames + 1))
            if [[ $line =~ \ s:([0-9]+x[0-9]+)\  ]]; then size=${BASH_REMATCH[1]}; fi
            ;;
        *Parsed_ashowinfo*\ nb_samples:*)
            if [[ $line =~ \ nb_samples:([0-9]+) ]]; then samples=$((samples + BASH_REMATCH[1])); fi
            ;;
        *Parsed_*) ;;
        *) echo "$line" >>"$work/player.log" ;;
        esac
        if ((SECONDS >= next)); then
            next=$((SECONDS + 3))
            tell
        fi
    done
    echo "$frames $samples $size" >"$work/decoded"
}
report <"$work/frames" &
reporter=$!
ffmpeg -nostdin -hide_banner -loglevel info -nostats -i "$url" -map 0:v -vf showinfo=checksum=0 -map 0:a -af ashowinfo \
    -f null - 2>"$work/frames" &
player=$!

# --- The device: 720p30 H.264 baseline and AAC, in real time.
ffmpeg -nostdin -hide_banner -loglevel warning -progress "$work/pushed" -re \
    -f lavfi -i testsrc2=size=1280x720:rate=30 -f lavfi -i sine=frequency=440:sample_rate=44100 ${ends_itself:+-t "$seconds"} \
    -c:v libx264 -profile:v baseline -preset veryfast -tune zerolatency -pix_fmt yuv420p -b:v 1500k -g 60 \
    -c:a aac -b:a 64k -f flv "$url" 2>"$work/publisher.log" &
publisher=$!
began=$SECONDS
echo "demo: device  pushes a test pattern to $url${ends_itself:+ for $seconds s}"

shown=
while kill -0 "$publisher" 2>/dev/null && [[ -z $stopped ]] && [[ -n $ends_itself || $((SECONDS - began)) -lt $seconds ]]; do
    sleep 0.2
    # Late enough for measured rates, early enough for short demos.
    if [[ -z $shown ]] && ((SECONDS - began >= 4 || (SECONDS - began) * 2 >= seconds)); then
        shown=1
        echo "demo: API     $http/api/v1/streams"
        # Curl reads the token from its own input: command lines are for all to see.
        printf 'header = "Authorization: Bearer %s"\n' "$(cat "$work/data/admin-token")" |
            curl -fsS --max-time 5 --config - "$http/api/v1/streams" || echo "demo: the API did not answer" >&2
        echo
    fi
    if gone "$server"; then fail "the server ended" "$work/server.log"; fi
done
if [[ -n $ends_itself || -n $stopped ]]; then stop "$publisher"; fi
# The server ends the player's stream when the publisher's clean stop has had its grace (3 s).
if [[ -n $ends_itself && -z $stopped ]]; then wait_for 10 gone "$player" || true; fi
stop "$player"
# The reporter ends with the player's output.
wait "$reporter" || true

pushed=$(sed -n 's/^frame=//p' "$work/pushed" 2>/dev/null | tail -n 1)
read -r frames samples size <"$work/decoded" 2>/dev/null || true
verdict="${pushed:-0} frames pushed, ${frames:-0} decoded${size:+ ($size)}, ${samples:-0} audio samples decoded"
if ((${frames:-0} == 0)); then
    cat "$work/publisher.log" >>"$work/player.log" 2>/dev/null || true
    fail "nothing was decoded: $verdict" "$work/player.log"
fi
echo "demo: $verdict"
if [[ -n $ends_itself || -n $stopped ]]; then exit 0; fi

# --- The console, until Ctrl-C. The first address may be too old by now.
console="$("$bin/earshot" console --server "$http" --data "$work/data" --quiet)&page=/rooms/demo"
echo "demo: the picture goes on in the console, until Ctrl-C: $console"
if [[ -n ${DISPLAY:-}${WAYLAND_DISPLAY:-} ]] && command -v xdg-open >/dev/null; then
    # Through a file: command lines, and so the code in this address, are for all to see.
    printf '<!doctype html><meta http-equiv="refresh" content="0; url=%s">\n' "$console" >"$work/console.html"
    xdg-open "$work/console.html" >/dev/null 2>&1 || true
fi
while [[ -z $stopped ]]; do
    sleep 0.2
    if gone "$server"; then fail "the server ended" "$work/server.log"; fi
    if gone "$publisher"; then fail "the device ended" "$work/publisher.log"; fi
done
