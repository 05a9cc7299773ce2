#!/usr/bin/env bash
# measure.sh SUITE: runs a measurement that the server's tests contain, alone, in a debug build. Its figures are lines that begin with
# "delay"; what else the tests say goes to stderr. hls.sh and talk.sh call it.
set -euo pipefail
. "$(dirname "$0")/../scripts/build-env.sh"
enter_scratch debug
swift build --build-tests --scratch-path "$SCRATCH" >&2 9>&-
EARSHOT_MEASURE=1 swift test --skip-build --disable-xctest --scratch-path "$SCRATCH" --filter "EndToEndTests.$1" 9>&- 2>&1 |
    tee /dev/stderr | grep '^delay '
