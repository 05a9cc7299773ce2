#!/usr/bin/env bash
# docs-check.sh [BINARY]: whether what the Markdown files name exists: files, anchors, make targets, routes of the API and, with the path of an
# earshot binary, its commands and options; then it runs the commands of their shell blocks. Without a path it takes the newest binary that was built, and
# leaves out what needs one when there is none.
set -euo pipefail
cd "$(dirname "$0")/.."

binary=${1:-}
if [[ -z $binary ]]; then
    root=${EARSHOT_SCRATCH:-${XDG_CACHE_HOME:-${HOME:-}/.cache}/earshot}
    shopt -s nullglob
    for built in "$root"/{debug,release}-*/{debug,release}/earshot .build*/{debug,release}/earshot; do
        [[ -x $built ]] || continue
        if [[ -z $binary || $built -nt $binary ]]; then binary=$built; fi
    done
elif [[ ! -x $binary ]]; then
    printf 'docs-check: %s is no program\n' "$binary" >&2
    exit 2
fi
python3 scripts/docs_check.py ${binary:+"$binary"}
[[ -z $binary ]] || exec python3 scripts/docs_run.py "$binary"
