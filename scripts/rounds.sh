#!/usr/bin/env bash
# rounds.sh [COUNT [PART…]]: what was flaky once, COUNT (50) times in a row, each round beside what else the machine does; the first failure ends
# it. Parts: tests, console, histories, torture, players, budgets (default: all). Which tests and cases these are stands in Tests/README.md,
# in the first column of the table under "What was flaky". ROUNDS_ONLY: a regular expression that chooses among the tests.
set -euo pipefail
count=${1:-50}
shift || true
parts=" ${*:-tests console histories torture players budgets} "
cd "$(dirname "$0")/.."
scripts/packages.sh test
. scripts/build-env.sh

rows=$(sed -n '/^## What was flaky/,/^## Faults/s/^| \([^|]*\) |.*/\1/p' Tests/README.md)
# Prints the text in backticks of the rows that grep keeps with these options.
# shellcheck disable=SC2016
names() { grep "$@" <<<"$rows" | grep -o '`[A-Za-z0-9./-]*`' | tr -d '`' | sort -u; }
others='^console\|^torture\|^player\|^histories\|^budgets'
tests=$(names -v "$others" | grep -E "${ROUNDS_ONLY:-.}")
mapfile -t cases < <(names '^console')
mapfile -t kinds < <(names '^torture')
mapfile -t players < <(names '^player')
# Suite.test, a suite, or a test.
filter=$(sed -E 's/^([A-Z][A-Za-z0-9]*)\.(.*)$/\\.\1\/\2\\(/; t; s/^([A-Z].*)$/\\.\1\//; t; s/^(.*)$/\/\1\\(/' <<<"$tests" | paste -sd '|')

enter_scratch debug
swift build --build-tests --scratch-path "$SCRATCH" 9>&-
binary=$SCRATCH/debug/earshot
if [[ $parts == *" budgets "* ]]; then
    BUDGET_BIN=$(EARSHOT_CORE=LibC,Media,RTMP,Health,Trace,Relay,CFFmpeg,FFmpeg,MediaClips,TestSupport,earshot-budget scripts/build.sh release earshot-budget 9>&-)/earshot-budget
    export BUDGET_BIN
fi

part() {
    case $1 in
    tests) swift test --skip-build --disable-xctest --scratch-path "$SCRATCH" --experimental-maximum-parallelization-width 6 --filter "$filter" ;;
    console) python3 Tests/Console --earshot "$binary" "${cases[@]}" ;;
    histories) python3 Tests/Histories --ci --earshot "$binary" ;;
    torture) python3 Tests/Torture --rounds 1 --kind "${kinds[@]}" --earshot "$binary" --load "$SCRATCH/debug/earshot-load" ;;
    players) for case in "${players[@]}"; do python3 Tests/Players --earshot "$binary" --only "$case" || return; done ;;
    budgets) Benchmarks/budget.sh ;;
    *) say "no part is called $1; there are: tests, console, histories, torture, players, budgets" && return 2 ;;
    esac
}

log=$(mktemp)
say "$(wc -l <<<"$tests") names of tests, ${#cases[@]} cases of the console;$parts: $count rounds"
for ((round = 1; round <= count; round++)); do
    start=$SECONDS
    : >"$log"
    for name in $parts; do
        if ! part "$name" 9>&- >>"$log" 2>&1; then
            grep -A 3 'recorded an issue\|FAILED\|error: ' "$log" | tail -n 40 >&2 || tail -n 20 "$log" >&2
            say "round $round of $count: $name failed after $((SECONDS - start)) s; the output is in $log"
            exit 1
        fi
    done
    say "round $round of $count: $((SECONDS - start)) s, $(sed -n 's/.*Test run with \([0-9]* tests\).*/\1/p' "$log" | tail -n 1), load $(cut -d ' ' -f 1 /proc/loadavg)"
done
rm -f "$log"
say "all $count rounds passed in $SECONDS s"
