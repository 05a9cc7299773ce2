# shellcheck shell=bash
# Sourced by budget.sh and share.sh, with `set -euo pipefail`: the program whose instructions they count, in $work/earshot-budget. BUDGET_BIN names another than a release build.
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit

say() { printf '%s: %s\n' "$(basename "$0" .sh)" "$*" >&2; }

if [[ -z ${BUDGET_BIN:-} ]]; then
    # Without the server, which is most of a build.
    dir=$(EARSHOT_CORE=LibC,CFileStatus,Support,Media,RTMP,Health,Trace,Sockets,Relay,CFFmpeg,FFmpeg,MediaClips,TestSupport,earshot-budget scripts/build.sh release earshot-budget)
    BUDGET_BIN=$dir/earshot-budget
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Debian's valgrind trips over the debug information; the names of functions stay.
strip --strip-debug -o "$work/earshot-budget" "$BUDGET_BIN"
# Otherwise each run hashes in another way.
export SWIFT_DETERMINISTIC_HASHING=1

# Only what the program's own main does is counted. Libraries start before it, and one of libavcodec's (Highway) then measures the clock's
# resolution, with more or fewer steps and allocations each time.
# shellcheck disable=SC2034
entry=earshot_budget_main
