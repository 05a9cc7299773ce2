#!/usr/bin/env bash
# How long a picture takes from its arrival to the playlist that lists its part, with low latency HLS. See README.md in this folder.
set -euo pipefail
cd "$(dirname "$0")/.."
for tool in ffmpeg curl; do
    command -v "$tool" >/dev/null || { printf 'bench: needs %s: make test installs it\n' "$tool" >&2; exit 1; }
done
exec Benchmarks/measure.sh HLSDelayMeasurement
