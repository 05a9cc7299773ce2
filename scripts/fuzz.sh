#!/usr/bin/env bash
# fuzz.sh replay [TARGET…]     gives each kept input to its target, and no new ones
# fuzz.sh ci [TARGET…]         the same, then ten seconds of new inputs each, of which only crashers are kept
# fuzz.sh SECONDS [TARGET…]    so long each; inputs that reach new code join Tests/Fuzz/Corpus
# fuzz.sh minimize [TARGET…]   keeps in the corpora the fewest inputs that reach as much
#
# libFuzzer and the address sanitizer drive every decoder that peers feed (Tests/Fuzz/README.md). A crasher goes to Tests/Fuzz/Crashers and
# fails the run. FUZZ_JOBS targets run at a time (2); FUZZ_SEED repeats the runs of a table's seed.
set -euo pipefail
. "$(dirname "$0")/build-env.sh"

usage() {
    sed -n '2,5s/^# //p' scripts/fuzz.sh >&2
    exit 2
}

mode=${1:-}
seconds=0
case $mode in
replay | minimize) ;;
ci) seconds=10 ;;
*)
    [[ $mode =~ ^[1-9][0-9]*$ ]] || usage
    seconds=$mode
    ;;
esac
shift
jobs=${FUZZ_JOBS:-2}
corpora=Tests/Fuzz/Corpus
crashers=Tests/Fuzz/Crashers

# The tests under the address sanitizer are built in the same folder (sanitize.sh): what both need is built once.
export EARSHOT_CORE=$ADDRESS_CORE EARSHOT_FUZZ=1
enter_scratch address
swift build --product earshot-fuzz --sanitize=address --scratch-path "$SCRATCH" 9>&- >&2
program=$SCRATCH/debug/earshot-fuzz

work=$(mktemp -d)
running=()
end() {
    local id
    for id in "${running[@]}"; do kill "$id" 2>/dev/null || true; done
    rm -rf "$work"
}
trap end EXIT
# Two handlers of the same signals: libFuzzer's keeps the input.
export SWIFT_BACKTRACE=enable=no
# detect_stack_use_after_return costs a third of the speed; Swift has no such pointers.
export ASAN_OPTIONS="detect_stack_use_after_return=0:allocator_may_return_null=1 ${ASAN_OPTIONS:-}"
export LSAN_OPTIONS="suppressions=$PWD/scripts/leaks.txt:print_suppressions=0 ${LSAN_OPTIONS:-}"

mapfile -t known < <("$program" list)
targets=("${known[@]}")
if (($#)); then targets=("$@"); fi
for target in "${targets[@]}"; do
    [[ " ${known[*]} " == *" $target "* ]] || {
        say "no target $target; expected some of: ${known[*]}"
        exit 2
    }
done

# count FOLDER…: files in there; a folder that is not there has none.
count() { { find "$@" -type f 2>/dev/null || true; } | wc -l; }

# replay TARGET: each file alone, so that the log names the one that fails.
replay() {
    local files=()
    mapfile -t files < <(find "$corpora/$1" "$crashers/$1" -type f 2>/dev/null | sort)
    ((${#files[@]})) || return 0
    "$program" "$1" "${files[@]}" >"$work/$1.replay" 2>&1
}

# fuzz TARGET SEED: new inputs, found ones to $work/TARGET.new and TARGET.found.
fuzz() {
    local target=$1
    mkdir -p "$work/$target.new" "$work/$target.found" "$corpora/$target"
    "$program" "$target" "-max_total_time=$seconds" "-seed=$2" -print_final_stats=1 "-artifact_prefix=$work/$target.found/" \
        "$work/$target.new" "$corpora/$target" >"$work/$target.log" 2>&1
}

# minimize TARGET INTO FROM…: the fewest inputs that reach as much.
minimize() {
    local target=$1
    shift
    "$program" "$target" -merge=1 "-artifact_prefix=$work/$target.merge-" "$@" >"$work/$target.merge" 2>&1
}

run() {
    local target=$1 status=0
    echo "$2" >"$work/$target.seed"
    replay "$target" || status=1
    if ((status == 0 && seconds > 0)); then
        fuzz "$target" "$2" || status=2
        if [[ $mode != ci ]]; then
            local before after
            before=$(count "$corpora/$target")
            minimize "$target" "$corpora/$target" "$work/$target.new" || true
            after=$(count "$corpora/$target")
            echo $((after - before)) >"$work/$target.kept"
        fi
    elif [[ $mode == minimize ]]; then
        mkdir -p "$work/$target.least"
        minimize "$target" "$work/$target.least" "$corpora/$target" || status=1
        if ((status == 0)); then
            rm -rf "${corpora:?}/$target"
            cp -r "$work/$target.least" "$corpora/$target"
        fi
    fi
    echo "$status" >"$work/$target.status"
}

for target in "${targets[@]}"; do
    while (($(jobs -rp | wc -l) >= jobs)); do wait -n || true; done
    run "$target" "${FUZZ_SEED:-$((RANDOM * 32768 + RANDOM + 1))}" 9>&- &
    running+=($!)
done
wait
running=()

final() { { sed -n "s/^stat::$2: *//p" "$work/$1.log" 2>/dev/null || true; } | tail -n 1; }
field() { { grep -o " $2: [0-9]*" "$work/$1.log" 2>/dev/null || true; } | tail -n 1 | tr -dc 0-9; }
failed=()
printf '%-16s %10s %8s %7s %8s %6s %5s %7s  %s\n' target executions a/second edges features corpus new crashes seed
for target in "${targets[@]}"; do
    status=$(cat "$work/$target.status" 2>/dev/null || echo 3)
    ((status == 0)) || failed+=("$target")
    # An input that is merely slow is no crasher.
    rm -f "$work/$target.found"/slow-unit-*
    found=$(count "$work/$target.found")
    ((status == 0 || found > 0)) || found=1
    if ((seconds)); then
        new=$(cat "$work/$target.kept" 2>/dev/null || final "$target" new_units_added)
        printf '%-16s %10s %8s %7s %8s %6s %5s %7s  %s\n' "$target" "$(final "$target" number_of_executed_units)" \
            "$(final "$target" average_exec_per_sec)" "$(field "$target" cov)" "$(field "$target" ft)" \
            "$(count "$corpora/$target")" "${new:-0}" "$found" "$(cat "$work/$target.seed")"
    else
        printf '%-16s %10s %8s %7s %8s %6s %5s %7s  %s\n' "$target" "$(grep -c '^Executed ' "$work/$target.replay" 2>/dev/null || true)" \
            - - - "$(count "$corpora/$target")" 0 "$found" -
    fi
done
say "$(find "$corpora" -type f -printf '%s\n' | awk '{ sum += $1 } END { print sum + 0 }') bytes of corpora"

((${#failed[@]})) || exit 0
for target in "${failed[@]}"; do
    say "$target failed:"
    if [[ -s $work/$target.log ]]; then log=$work/$target.log; else log=$work/$target.replay; fi
    # From the report on; before it stand the inputs that went well.
    sed -n '/Fatal error\|ERROR: \|^==.*==\|^Running: /,$p' "$log" | grep -v '^#[0-9]*\sNEW\|^Executed ' | tail -n 60 >&2
    for file in "$work/$target.found"/*; do
        [[ -f $file ]] || continue
        mkdir -p "$crashers/$target"
        cp "$file" "$crashers/$target/"
        say "kept as $crashers/$target/${file##*/}, base64: $(head -c 6144 "$file" | base64 -w 0)"
    done
done
exit 1
