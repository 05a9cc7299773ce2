#!/usr/bin/env bash
# sanitize.sh address|thread [server] [FLAGS OF swift test]: runs tests built with that sanitizer, all or those that the flags choose. A
# misuse of memory, a leak or a data race fails it.
#
# Address: all targets that read what peers send or hand memory to C. Thread: the relay, whose objects several threads share, and talk.
# server: the server's tests instead, with real clients (make torture; half an hour each).
set -euo pipefail
. "$(dirname "$0")/build-env.sh"

sanitizer=${1:-}
case $sanitizer in
address)
    # The fuzz targets' program is built in the same folder (fuzz.sh).
    export EARSHOT_CORE=$ADDRESS_CORE EARSHOT_FUZZ=1
    tests=(--filter '^(Support|Media|RTMP|HLS|Talk|Sockets|Relay|FFmpeg|LinkTransport)Tests\.')
    width=2
    ;;
thread)
    export EARSHOT_CORE=LibC,CFileStatus,Support,Media,RTMP,Health,Sockets,Relay,Talk,SignalCheck,TestSupport EARSHOT_FAST=Talk,TalkTests,SignalCheck
    tests=(--filter '^(Sockets|Relay|Talk)Tests\.')
    width=6
    ;;
*)
    say "usage: sanitize.sh address|thread [server] [FLAGS OF swift test]"
    exit 2
    ;;
esac
shift
if [[ ${1:-} == server ]]; then
    shift
    unset EARSHOT_CORE EARSHOT_FUZZ EARSHOT_FAST
    # Not what counts memory or holds a load within milliseconds, of which a sanitizer takes many times as much; nor what libfaketime
    # is preloaded into, ahead of the sanitizer: such a server hangs at its start.
    tests=(--skip '^(Support|Media|RTMP|HLS|Talk|Sockets|Relay|FFmpeg)Tests\.|Hostile/Memory|LoadedServerTests|SystemMemoryTests|HTTPFloodTests|aThrottledServerCutsNobody|ClockLeapProcessTests')
    width=4
    export EARSHOT_PATIENCE=${EARSHOT_PATIENCE:-5}
fi
if (($#)); then tests=("$@"); fi

# Each step takes several times as long here.
export EARSHOT_CHURN_VIEWERS=${EARSHOT_CHURN_VIEWERS:-3000}
# Two handlers of the same signals: the runtime's own reports less.
export SWIFT_BACKTRACE=enable=no
# The rest of the tests runs on after a race, so that one run shows all of them; the exit code reports them.
# Reports go to files and are printed last: behind them come hundreds of lines of tests that passed.
notes=$(mktemp -d)
tell() { cat "$notes"/report.* 2>/dev/null || true; rm -rf "$notes"; }
trap tell EXIT
export TSAN_OPTIONS="exitcode=66:second_deadlock_stack=1:suppressions=$PWD/scripts/races.txt:log_path=$notes/report ${TSAN_OPTIONS:-}"
# Deep enough to see a nested value's maker, by which leaks.txt knows it: thirty calls are the usual end.
export ASAN_OPTIONS="detect_leaks=1:malloc_context_size=128:log_path=$notes/report ${ASAN_OPTIONS:-}"
export LSAN_OPTIONS="suppressions=$PWD/scripts/leaks.txt:print_suppressions=0 ${LSAN_OPTIONS:-}"

enter_scratch "$sanitizer"
start=$SECONDS
swift build --build-tests --sanitize="$sanitizer" --scratch-path "$SCRATCH" 9>&-
say "built for the $sanitizer sanitizer in $((SECONDS - start)) s"
swift test --skip-build --sanitize="$sanitizer" --disable-xctest --scratch-path "$SCRATCH" \
    --experimental-maximum-parallelization-width "$width" "${tests[@]}" 9>&-
# Also of a server that a test started, and whose exit code it did not look at.
if compgen -G "$notes/report.*" >/dev/null; then
    say "the $sanitizer sanitizer has found something"
    exit 1
fi
