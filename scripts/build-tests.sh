#!/usr/bin/env bash
# build-tests.sh: the debug build with all tests, in $SCRATCH, whose lock the caller holds.
set -euo pipefail
. "$(dirname "$0")/build-env.sh"
build_tests
