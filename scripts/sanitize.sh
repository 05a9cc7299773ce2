#!/usr/bin/env bash
# sanitize.sh thread|address [FLAGS OF swift test]: runs the relay's tests built with that sanitizer. A data race, a misuse of memory
# or a leak fails it. Only the relay, where loops share memory and pointers go to the kernel: with the server and all that it needs
# each would take a quarter of an hour.
set -euo pipefail
. "$(dirname "$0")/build-env.sh"

sanitizer=${1:-}
case $sanitizer in
thread | address) shift ;;
*)
    say "usage: sanitize.sh thread|address [FLAGS OF swift test]"
    exit 2
    ;;
esac

export EARSHOT_CORE=Media,Relay
# Each step takes ten times as long here.
export EARSHOT_CHURN_VIEWERS=${EARSHOT_CHURN_VIEWERS:-3000}
# Two handlers of the same signals: the runtime's own tells less.
export SWIFT_BACKTRACE=enable=no
# The rest of the tests runs on after a race, so that one run shows all of them; the exit code tells.
# Reports go to files and are told last: behind them come hundreds of lines of tests that passed.
notes=$(mktemp -d)
tell() { cat "$notes"/report.* 2>/dev/null || true; rm -rf "$notes"; }
trap tell EXIT
export TSAN_OPTIONS="exitcode=66:second_deadlock_stack=1:log_path=$notes/report ${TSAN_OPTIONS:-}"
export ASAN_OPTIONS="detect_leaks=1:log_path=$notes/report ${ASAN_OPTIONS:-}"
# What XCTest keeps until the end is not ours.
echo leak:libXCTest >"$notes/suppressions"
export LSAN_OPTIONS="suppressions=$notes/suppressions:print_suppressions=0 ${LSAN_OPTIONS:-}"

enter_scratch "$sanitizer"
swift build --build-tests --sanitize="$sanitizer" --scratch-path "$SCRATCH" 9>&-
swift test --skip-build --sanitize="$sanitizer" --disable-xctest --scratch-path "$SCRATCH" \
    --filter RelayTests "$@" 9>&-
