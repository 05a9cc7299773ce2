#!/usr/bin/env bash
# check.sh: what to run while working: formatting, scripts, imports, build, the tests of the parts, and the documents: what they name exists, and
# their commands work. Without the tests of servers, clients and players.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/packages.sh test
. scripts/build-env.sh
. scripts/steps.sh

step lint swift format lint --strict --parallel --recursive Package.swift Sources Tests Benchmarks
step scripts scripts/lint-scripts.sh
step imports scripts/check_imports.py
step "target graph" scripts/target_graph.py
enter_scratch debug
step build swift build --build-tests --scratch-path "$SCRATCH" 9>&-
attempt "tests of the parts" run_tests --skip EndToEndTests --skip UpstreamTests
attempt documents scripts/docs-check.sh "$SCRATCH/debug/earshot" 9>&-
finish
