#!/usr/bin/env bash
# test.sh [FLAGS OF swift test]: formatting, build, all tests; says how long each took. Without flags also the loaded server alone, real
# players, the relay under the sanitizers, and the budgets of instructions and allocations. What failed is told again at the end.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/packages.sh test
. scripts/build-env.sh

step() {
    local name=$1 start=$SECONDS
    shift
    say "$name"
    "$@" || {
        say "$name: failed after $((SECONDS - start)) s"
        exit 1
    }
    say "$name: $((SECONDS - start)) s"
}

step lint swift format lint --strict --parallel --recursive Package.swift Sources Tests Benchmarks
enter_scratch debug
step build swift build --build-tests --scratch-path "$SCRATCH" 9>&-
RESULTS=$(mktemp -d)
trap 'rm -rf "$RESULTS"' EXIT
declare -a AGAIN=()
# Hundreds of servers and clients at once would only wait for one another; a few more than the cores keep these busy.
swift_test() {
    swift test --skip-build --disable-xctest --scratch-path "$SCRATCH" --xunit-output "$RESULTS/tests.xml" "$@" 9>&- 2>&1 |
        tee "$RESULTS/log"
}
# Real clients beside real servers on a busy machine: one that came too late is asked once more, alone, and named at the end. More
# than three, or a crash, are no such thing.
run_tests() {
    rm -f "$RESULTS"/*
    swift_test --experimental-maximum-parallelization-width "${TEST_WIDTH:-6}" "$@" && return
    local failed
    failed=$(scripts/failed-tests.sh "$RESULTS/tests.xml")
    failures
    [[ -n $failed ]] && (($(wc -l <<<"$failed") <= 3)) || return 1
    say "once more, alone: ${failed//$'\n'/, }"
    swift_test --experimental-maximum-parallelization-width 1 --filter "$(paste -sd '|' <<<"$failed")" || {
        failures
        return 1
    }
    AGAIN+=("$failed")
}
# The lines that say what was expected, without the hundreds around them.
failures() { grep -A 3 '^✘ Test .* recorded an issue\|^.*error: ' "$RESULTS/log" | cut -c 1-600 | tail -n 80 >&2 || true; }
if (($#)); then
    step tests run_tests "$@"
else
    # Apart: what computes for seconds on the threads that tests share would keep the servers, and the links to them, from answering.
    step "tests of the parts" run_tests --skip EarshotServerTests --skip UpstreamTests
    step "tests of the links" run_tests --filter UpstreamTests
    step "tests of the server" run_tests --filter EarshotServerTests --skip LoadedServer
    # These load both cores, which would make others late that watch the clock.
    step "loaded server" run_tests --filter LoadedServerTests
    # And these have every message be sent when it is due.
    step "talk by the clock" run_tests --filter LoadedServerTalkTests
    step players python3 Tests/Players --ci --earshot "$SCRATCH/debug/earshot" 9>&-
    leave_scratch
    step "address sanitizer" scripts/sanitize.sh address
    step "thread sanitizer" scripts/sanitize.sh thread
    step budgets Benchmarks/budget.sh
fi
((${#AGAIN[@]})) && say "passed only when run again, alone: ${AGAIN[*]//$'\n'/, }"
say "all passed in $SECONDS s"
