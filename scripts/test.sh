#!/usr/bin/env bash
# test.sh [FLAGS OF swift test]: formatting, build, all tests; says how long each took. Without flags also the loaded server alone, the
# relay under the sanitizers, and the budgets of instructions and allocations.
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
# Hundreds of servers and clients at once would only wait for one another; a few more than the cores keep these busy.
run_tests() {
    swift test --skip-build --disable-xctest --scratch-path "$SCRATCH" --experimental-maximum-parallelization-width "${TEST_WIDTH:-6}" \
        "$@" 9>&-
}
if (($#)); then
    step tests run_tests "$@"
else
    # Apart: what computes for seconds on the threads that tests share would keep the servers from answering.
    step "tests of the parts" run_tests --skip EarshotServerTests
    step "tests of the server" run_tests --filter EarshotServerTests --skip LoadedServerTests
    # These load both cores, which would make others late that watch the clock.
    step "loaded server" run_tests --filter LoadedServerTests
    leave_scratch
    step "address sanitizer" scripts/sanitize.sh address
    step "thread sanitizer" scripts/sanitize.sh thread
    step budgets Benchmarks/budget.sh
fi
say "all passed in $SECONDS s"
