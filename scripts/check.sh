#!/usr/bin/env bash
# check.sh: what to run while working: formatting, scripts, build, and the tests of the parts, without servers, clients and players.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/packages.sh test
. scripts/build-env.sh
. scripts/steps.sh

step lint swift format lint --strict --parallel --recursive Package.swift Sources Tests Benchmarks
step scripts scripts/lint-scripts.sh
enter_scratch debug
step build swift build --build-tests --scratch-path "$SCRATCH" 9>&-
attempt "tests of the parts" run_tests --skip EarshotServerTests --skip UpstreamTests
finish
