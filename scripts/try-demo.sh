#!/usr/bin/env bash
# try-demo.sh: the demo of the debug build in $SCRATCH for a few seconds: pictures are decoded, and the console's address is printed.
set -euo pipefail
cd "$(dirname "$0")/.."
output=$(mktemp)
trap 'rm -f "$output"' EXIT
DEMO_SECONDS=6 DEMO_BIN=$SCRATCH/debug scripts/demo.sh | tee "$output"
grep -q '^demo: console http://.*&page=/rooms/demo$' "$output"
