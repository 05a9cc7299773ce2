#!/usr/bin/env bash
# rounds.sh [COUNT]: the tests that were flaky once, COUNT (50) times in a row, each round beside what else the machine does; the first failure
# ends it. Which these are stands in Tests/README.md, in the first column of the table under "What was flaky": tests, and cases of the console.
set -euo pipefail
count=${1:-50}
cd "$(dirname "$0")/.."
scripts/packages.sh test
. scripts/build-env.sh

rows=$(sed -n '/^## What was flaky/,/^## Faults/s/^| \([^|]*\) |.*/\1/p' Tests/README.md)
# A name with a slash is a case of the players' suite, of which nothing was wrong.
# shellcheck disable=SC2016
tests=$(grep -v '^console\|^torture' <<<"$rows" | grep -o '`[A-Za-z0-9.]*`' | tr -d '`' | sort -u)
# shellcheck disable=SC2016
cases=$(grep '^console' <<<"$rows" | grep -o '`[a-z]*`' | tr -d '`' | sort -u)
# Suite.test, a suite, or a test.
filter=$(sed -E 's/^([A-Z][A-Za-z0-9]*)\.(.*)$/\\.\1\/\2\\(/; t; s/^([A-Z].*)$/\\.\1\//; t; s/^(.*)$/\/\1\\(/' <<<"$tests" | paste -sd '|')

enter_scratch debug
swift build --build-tests --scratch-path "$SCRATCH" 9>&-
log=$(mktemp)
say "$(wc -l <<<"$tests") names of tests and $(wc -l <<<"$cases") cases of the console, $count rounds"
for ((round = 1; round <= count; round++)); do
    start=$SECONDS
    # shellcheck disable=SC2086
    if ! swift test --skip-build --disable-xctest --scratch-path "$SCRATCH" --experimental-maximum-parallelization-width 6 --filter "$filter" \
        9>&- >"$log" 2>&1 || ! python3 Tests/Console --earshot "$SCRATCH/debug/earshot" $cases 9>&- >>"$log" 2>&1; then
        grep -A 3 'recorded an issue\|FAILED\|error: ' "$log" | tail -n 40 >&2 || true
        say "round $round of $count failed after $((SECONDS - start)) s; its output is in $log"
        exit 1
    fi
    say "round $round of $count: $((SECONDS - start)) s, $(sed -n 's/.*Test run with \([0-9]* tests\).*/\1/p' "$log" | tail -n 1), load $(cut -d ' ' -f 1 /proc/loadavg)"
done
rm -f "$log"
say "all $count rounds passed in $SECONDS s"
