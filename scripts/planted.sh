#!/usr/bin/env bash
# planted.sh [NAME…]: whether a leak, a race, an overflow, a doubled frame, a step of the clock and a lost event, planted one at a time into a
# copy of the tree, are each noticed by the run that should notice them (Tests/Planted). Half an hour: the copy has builds of its own.
set -euo pipefail
. "$(dirname "$0")/build-env.sh"
scripts/packages.sh test
enter_scratch planted
exec python3 Tests/Planted --scratch "$SCRATCH" "$@" 9>&-
