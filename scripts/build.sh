#!/usr/bin/env bash
# build.sh debug|release PRODUCT…: builds the products and prints, alone on standard output, the folder that they are in.
set -euo pipefail
. "$(dirname "$0")/build-env.sh"

configuration=${1:?usage: build.sh debug|release PRODUCT…}
shift
enter_scratch "$configuration"
for product in "$@"; do "${configuration}_build" --product "$product"; done
# SwiftPM's own link to the folder of this system's kind.
printf '%s\n' "$SCRATCH/$configuration"
