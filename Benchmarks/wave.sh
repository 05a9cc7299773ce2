#!/usr/bin/env bash
# How soon the devices of a lost node are live on the two others: all push to one node, which is killed with -9. See README.md in this folder.
#
#   COUNT=1000           devices
#   ROUNDS=3
#   EARSHOT_BIN          binary to use instead of a release build
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/packages.sh cluster-bench
EARSHOT_BIN=${EARSHOT_BIN:-$(scripts/build.sh release earshot)/earshot}
results=Benchmarks/results/$(date -u +%Y%m%dT%H%M%SZ)-wave
mkdir -p "$results"
exec python3 Benchmarks/Cluster/wave.py --earshot "$EARSHOT_BIN" --count "${COUNT:-1000}" --rounds "${ROUNDS:-3}" --json "$results/wave.json"
