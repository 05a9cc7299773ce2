# Sourced by test.sh and check.sh, from the clone's root, after build-env.sh: steps that say how long they took, and runs of `swift test`.
# shellcheck shell=bash

RESULTS=$(mktemp -d)
trap 'rm -rf "$RESULTS"' EXIT
: >"$RESULTS/failures"
declare -a FAILED=()

# step NAME COMMAND…: what comes after it makes no sense without it.
step() {
    attempt "$@"
    ((${#FAILED[@]} == 0)) || finish
}

# attempt NAME COMMAND…: the next ones run all the same, so that one run shows everything that fails. `finish` reports.
attempt() {
    local name=$1 start=$SECONDS known
    shift
    say "$name"
    known=$(wc -l <"$RESULTS/failures")
    if "$@" 2>&1 | tee "$RESULTS/step"; then
        say "$name: $((SECONDS - start)) s"
    else
        say "$name: failed after $((SECONDS - start)) s"
        FAILED+=("$name")
        # run_tests reports its own failures. For other steps, prints the lines that say what failed, or else the last ones.
        if (($(wc -l <"$RESULTS/failures") == known)); then
            { echo "$name:"; { failures "$RESULTS/step" | grep . || tail -n 20 "$RESULTS/step"; } | cut -c 1-1000; } >>"$RESULTS/failures"
        fi
    fi
}

# Names what failed. The run's last word.
finish() {
    if ((${#FAILED[@]})); then
        local names
        names=$(printf ', %s' "${FAILED[@]}")
        [[ ! -s $RESULTS/failures ]] || { say "what failed:"; cat "$RESULTS/failures" >&2; }
        say "failed: ${names:2} (after $SECONDS s in all)"
        exit 1
    fi
    say "all passed in $SECONDS s"
    exit 0
}

# failures FILE: the lines that say what was expected, without the thousands around them.
failures() { grep -A 3 '^✘ Test .* recorded an issue\|^FAILED \|^.*error: ' "$1" | tail -n 80 || true; }

# run_tests FLAGS OF swift test: what is built in $SCRATCH. A test that fails fails the run: none is asked a second time.
# Hundreds of servers and clients at once would only wait for one another; a few more than the cores keep these busy.
run_tests() {
    local code=0
    swift test --skip-build --disable-xctest --scratch-path "$SCRATCH" --experimental-maximum-parallelization-width "${TEST_WIDTH:-6}" "$@" \
        9>&- 2>&1 | tee "$RESULTS/log" || code=$?
    failures "$RESULTS/log" | cut -c 1-600 >>"$RESULTS/failures"
    ((code == 0)) || return "$code"
    if ! grep -q 'Test run with [1-9]' "$RESULTS/log"; then
        say "no test ran: $*" |& tee -a "$RESULTS/failures" >&2
        return 1
    fi
}
