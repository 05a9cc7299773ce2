#!/usr/bin/env bash
# Torture of a release build (Tests/Torture/README.md): torture.sh [ARGUMENTS OF THE SUITE]. EARSHOT_BIN and LOAD_BIN name other binaries.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/packages.sh test
if [[ -z ${EARSHOT_BIN:-} ]]; then
    bin=$(scripts/build.sh release earshot earshot-load)
    EARSHOT_BIN=$bin/earshot
    LOAD_BIN=${LOAD_BIN:-$bin/earshot-load}
fi
export EARSHOT_BIN LOAD_BIN=${LOAD_BIN:-}
exec python3 Tests/Torture "$@"
