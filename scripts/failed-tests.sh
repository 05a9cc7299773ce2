#!/usr/bin/env bash
# failed-tests.sh FILE: the tests that failed by an xUnit file of swift test, a filter of swift test on each line; none where there is
# no such file.
set -euo pipefail
[[ -f $1 ]] || exit 0
# A test's case opens a line of its own; what it failed with stands on the next.
awk -F '"' '/<testcase / { test = $2 "[./]" $4 } /<failure/ { print test }' "$1" | sed 's/(.*//; s/$/\\b/' | sort -u
