#!/usr/bin/env bash
# The cost of viewers by WebRTC on one core, each with keys of its own: of a stream of 2 Mbit/s, few and as many as a core serves, and of a voice alone.
# See README.md in this folder.
#
#   SECONDS_MEASURED=20  of each part
#   VIEWERS="100 1000"   of the stream; VOICES="1000" of the voice; "" leaves a part out
#   SRS_BIN              an srs to measure beside it, of the stream
#   EARSHOT_BIN, LOAD_BIN binaries to use instead of a release build
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf 'bench: %s\n' "$*" >&2; }
for tool in ffmpeg python3; do
    command -v "$tool" >/dev/null || { say "needs $tool: make test installs it"; exit 1; }
done
seconds=${SECONDS_MEASURED:-20}
EARSHOT_BIN=${EARSHOT_BIN:-$(scripts/build.sh release earshot)/earshot}
LOAD_BIN=${LOAD_BIN:-$(scripts/build.sh release earshot-load)/earshot-load}
on_server_core=() on_load_core=()
if (($(nproc) >= 2)) && command -v taskset >/dev/null; then
    on_server_core=(taskset -c 0)
    on_load_core=(taskset -c 1)
fi
work=$(mktemp -d)
processes=()
end() {
    ((${#processes[@]})) || return 0
    kill "${processes[@]}" 2>/dev/null || true
    wait "${processes[@]}" 2>/dev/null || true
    processes=()
}
trap 'end; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

# With noise: a test pattern alone has fewer bits than it may have. Constrained Baseline, which every server passes on.
ffmpeg -v error -f lavfi -i testsrc2=s=1280x720:r=25,noise=alls=12:allf=t -f lavfi -i sine=440:r=48000 -t 20 -c:v libx264 -preset veryfast \
    -profile:v baseline -tune zerolatency -b:v 2M -minrate 2M -maxrate 2M -bufsize 1M -g 50 -pix_fmt yuv420p -c:a aac -b:a 96k "$work/stream.flv"
ffmpeg -v error -f lavfi -i sine=440:r=48000 -t 20 -ac 1 -c:a aac -b:a 64k "$work/voice.flv"

# Each sets $server, $rtmp and $whep.
serve_earshot() {
    : >"$work/server.log"
    # One address has all the viewers here.
    EARSHOT_LIMITS_CONNECTIONS=8000 EARSHOT_LIMITS_CONNECTIONS_PER_ADDRESS=8000 EARSHOT_LIMITS_VIEWERS_PER_STREAM=8000 \
        "${on_server_core[@]}" "$EARSHOT_BIN" serve --rtmp 127.0.0.1:0 --http 127.0.0.1:0 --data "$(mktemp -d -p "$work")" >"$work/server.log" 2>&1 &
    server=$!
    for _ in {1..100}; do
        grep -q 'Stop with' "$work/server.log" && break
        sleep 0.1
    done
    rtmp=$(grep -oE 'rtmp://[^/ ]+:[0-9]+' "$work/server.log" | head -n 1)
    whep=$(grep -oE 'http://[^/ ]+:[0-9]+' "$work/server.log" | head -n 1)/whep/live/cam1
}
serve_srs() {
    local first=${SRS_PORT:-19350}
    cat >"$work/srs.conf" <<CONF
listen 127.0.0.1:$first;
daemon off;
srs_log_tank console;
srs_log_level error;
pid $work/srs.pid;
max_connections 8000;
http_api { enabled on; listen 127.0.0.1:$((first + 1)); }
rtc_server { enabled on; listen $((first + 2)); candidate 127.0.0.1; }
vhost __defaultVhost__ { rtc { enabled on; rtmp_to_rtc on; } }
CONF
    "${on_server_core[@]}" "$SRS_BIN" -c "$work/srs.conf" >"$work/server.log" 2>&1 &
    server=$!
    sleep 2
    rtmp=rtmp://127.0.0.1:$first
    whep="http://127.0.0.1:$((first + 1))/rtc/v1/whep/?app=live&stream=cam1"
}

measure() { # SERVER FILE VIEWERS
    "serve_$1"
    processes+=("$server")
    "${on_load_core[@]}" ffmpeg -v error -re -stream_loop -1 -i "$work/$2.flv" -c copy -f flv "$rtmp/live/cam1" 2>>"$work/clients.log" &
    processes+=($!)
    sleep 4
    local row=$work/row.json
    rm -f "$row"
    "${on_load_core[@]}" "$LOAD_BIN" watch --url "$whep" --viewers "$3" --seconds "$seconds" --server-pid "$server" --json "$row" >/dev/null || true
    end
    [[ -s $row ]] || { echo "| $1 | $2 | $3 | not served |"; return; }
    python3 - "$row" "$1" "$2" <<'PYTHON'
import json, sys

row = json.load(open(sys.argv[1], encoding="utf-8"))
print(
    f"| {sys.argv[2]} | {sys.argv[3]} | {row['viewers']:,} | {row['packetsPerSecond']:,.0f} | {row['lostPercent']:.2f} |"
    f" {row.get('delayP50Ms') or 0:.1f} / {row.get('delayP99Ms') or 0:.1f} | {row['usPerPacket']:.2f} | {row['usPerPacketOfUser']:.2f} |"
    f" {100 * row['coreShare']:.0f} % | {row['kibPerViewer']:.0f} |"
)
PYTHON
}

echo "| server | played | viewers | packets/s | lost, % | later than the least late picture, p50 / p99, ms | CPU µs/packet | not the kernel's | of a core | KiB a viewer |"
echo "|---|---|---|---|---|---|---|---|---|---|"
for count in ${VIEWERS-100 1000}; do
    measure earshot stream "$count"
    [[ -z ${SRS_BIN:-} ]] || measure srs stream "$count"
done
for count in ${VOICES-1000}; do measure earshot voice "$count"; done
