#!/usr/bin/env bash
# build.sh debug|release PRODUCT…: builds the products and prints, alone on standard output, the folder that they are in.
set -euo pipefail
. "$(dirname "$0")/build-env.sh"

configuration=${1:?usage: build.sh debug|release PRODUCT…}
shift
flags=(-c "$configuration")
# One file that runs without a toolchain, and whose calls into the runtime are direct.
[[ $configuration != release ]] || flags+=(--static-swift-stdlib)
enter_scratch "$configuration"
for product in "$@"; do
    swift build "${flags[@]}" --scratch-path "$SCRATCH" --product "$product" >&2 9>&-
done
swift build "${flags[@]}" --scratch-path "$SCRATCH" --show-bin-path 9>&-
