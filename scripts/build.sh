#!/usr/bin/env bash
# build.sh debug|release PRODUCT…: builds the products and prints, alone on standard output, the folder that they are in.
set -euo pipefail
. "$(dirname "$0")/build-env.sh"

configuration=${1:?usage: build.sh debug|release PRODUCT…}
shift
enter_scratch "$configuration"
for product in "$@"; do
    swift build -c "$configuration" --scratch-path "$SCRATCH" --product "$product" >&2 9>&-
done
swift build -c "$configuration" --scratch-path "$SCRATCH" --show-bin-path 9>&-
