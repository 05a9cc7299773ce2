#!/usr/bin/env bash
# release.sh: builds the optimised binary, without symbols, and prints where it is. Its symbols are beside it in earshot.debug; debuggers
# and perf find them there.
set -euo pipefail
. "$(dirname "$0")/build-env.sh"
built=$(scripts/build.sh release earshot)
enter_scratch release
mkdir -p "$SCRATCH/installable"
cd "$SCRATCH/installable"
if [[ ! -e earshot || $built/earshot -nt earshot ]]; then
    objcopy --only-keep-debug "$built/earshot" earshot.debug
    objcopy --strip-unneeded --add-gnu-debuglink=earshot.debug "$built/earshot" earshot.new
    mv earshot.new earshot
fi
say "earshot has $(($(stat -c %s earshot) >> 20)) MiB, earshot.debug beside it $(($(stat -c %s earshot.debug) >> 20)) MiB of symbols"
printf '%s\n' "$PWD/earshot"
