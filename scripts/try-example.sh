#!/usr/bin/env bash
# try-example.sh: the relay without rooms, of the debug build in $SCRATCH: what ffmpeg pushes plays as RTMP, FLV, MP4 and HLS.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
: "${SCRATCH:?the folder of the debug build, which make test sets}" >"$folder/log"
server='' push=''
finish() {
    for process in $push $server; do kill "$process" 2>/dev/null || true; done
    rm -rf "$folder"
}
trap finish EXIT
fail() {
    echo "error: $1" >&2
    cat "$folder"/log >&2
    exit 1
}

# The document shows the program as it is.
python3 - <<'PYTHON' || fail "docs/architecture.md does not show Sources/RelayExample/RelayExample.swift as it is"
import pathlib
import sys
program = pathlib.Path("Sources/RelayExample/RelayExample.swift").read_text(encoding="utf-8")
sys.exit(f"```swift\n{program}```\n" not in pathlib.Path("docs/architecture.md").read_text(encoding="utf-8"))
PYTHON
(($(wc -l <Sources/RelayExample/RelayExample.swift) <= 80)) || fail "the program has more than 80 lines"

"$SCRATCH/debug/RelayExample" 0 0 2>"$folder/log" &
server=$!
for _ in {1..100}; do
    ! grep -q 'Push and play' "$folder/log" || break
    sleep 0.1
done
rtmp=$(sed -n 's|.*Push and play \(rtmp://.*\)/NAME, .*|\1|p' "$folder/log")
http=$(sed -n 's|.*, play \(http://.*\)/NAME.m3u8$|\1|p' "$folder/log")
[[ -n $rtmp && -n $http ]] || fail "it printed no addresses"
ffmpeg -v error -re -f lavfi -i testsrc2=size=320x240:rate=25 -f lavfi -i sine=sample_rate=44100 -t 60 \
    -c:v libx264 -preset ultrafast -tune zerolatency -g 50 -pix_fmt yuv420p -c:a aac -f flv "$rtmp/cam" 2>>"$folder/log" &
push=$!
sleep 3
for url in "$rtmp/cam" "$http/cam.flv" "$http/cam.mp4" "$http/cam.m3u8"; do
    kinds=$(timeout 30 ffprobe -v error -show_entries stream=codec_name,width -of csv=p=0 -analyzeduration 2M "$url" 2>>"$folder/log" | grep . | sort -u | tr '\n' ' ')
    [[ $kinds == "aac h264,320 " ]] || fail "$url plays \"$kinds\", expected aac and h264 with 320 columns"
    frames=$(timeout 30 ffmpeg -v error -i "$url" -t 2 -map 0:v -f framemd5 - 2>>"$folder/log" | grep -vc '^#') || true
    ((frames >= 40)) || fail "$url shows $frames pictures in 2 s, expected 50"
done
echo "the relay without rooms plays as RTMP, FLV, MP4 and HLS"
