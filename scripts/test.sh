#!/usr/bin/env bash
# test.sh check|test|verify|list [ARGUMENTS]: the steps of these names (scripts/steps says which there are): installs what they need, holds the
# lock of the debug build's folder, and runs them. `test` with flags of `swift test` builds and runs the tests that they choose.
set -euo pipefail
. "$(dirname "$0")/build-env.sh"
scripts/packages.sh test
enter_scratch debug
export SCRATCH
# Python passes the lock to nothing that it starts.
exec python3 scripts/steps "$@"
