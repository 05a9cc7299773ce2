#!/usr/bin/env bash
# Real players against a release build (Tests/Players/README.md): players.sh [ARGUMENTS OF THE SUITE]. EARSHOT_BIN names another binary.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/packages.sh players
# A list needs no binary.
if [[ -z ${EARSHOT_BIN:-} && " $* " != *" --list "* ]]; then EARSHOT_BIN=$(scripts/build.sh release earshot)/earshot; fi
export EARSHOT_BIN=${EARSHOT_BIN:-}
if [[ ${1:-} == --joins ]]; then exec python3 Tests/Players/joins.py --earshot "$EARSHOT_BIN" "$@"; fi
exec python3 Tests/Players "$@"
