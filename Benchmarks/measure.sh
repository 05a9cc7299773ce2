#!/usr/bin/env bash
# measure.sh SUITE: runs a measurement that the server's tests contain, alone, in a debug build. Its figures are lines that begin with
# "delay"; what else the tests say goes to stderr. hls.sh and talk.sh call it.
set -euo pipefail
. "$(dirname "$0")/../scripts/build-env.sh"
enter_scratch debug
build_tests >&2
EARSHOT_MEASURE=1 "$SCRATCH/debug/earshotPackageTests.xctest" --testing-library swift-testing --filter "EndToEndTests.$1" 9>&- 2>&1 |
    tee /dev/stderr | grep '^delay '
