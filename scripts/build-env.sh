# Sourced by the other scripts, in bash with `set -euo pipefail`; goes to the clone's root.
#
# Builds are kept outside the clone, one folder per configuration, toolchain and set of packages, so that a fresh clone finds what an
# earlier one built:  ${EARSHOT_SCRATCH:-${XDG_CACHE_HOME:-~/.cache}/earshot}/<debug|release|thread|address>-<hash>
# Where that cannot be written, .build-<debug|release|…> within the clone serves.
# shellcheck shell=bash

# The targets that are tested under the address sanitizer and fuzzed, and what they depend on (EARSHOT_CORE).
# shellcheck disable=SC2034
ADDRESS_CORE=LibC,CFileStatus,Support,Media,RTMP,HLS,Talk,FFmpeg,LinkTransport,Health,Sockets,Relay,DTLSSRTP,WebRTC,CFFmpeg,CLibRTMP,COpenSSL,HLSCheck,SignalCheck,MediaClips,TestSupport,CZlib

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit

say() { printf 'earshot: %s\n' "$*" >&2; }

# Flags of the debug build, the same for tests and programs: with others everything would be compiled again. An index is for editors; debug
# information is lines alone, which backtraces need. Together they are a quarter of the compiler's time.
# shellcheck disable=SC2034
DEBUG_FLAGS=(--disable-index-store -debug-info-format none -Xswiftc -gline-tables-only)

# Targets that the debug build optimises, with its checks: their tests compute for a minute each otherwise.
DEBUG_FAST=HLS,HLSCheck,HLSTests,RTMP,RTMPTests,Talk,TalkTests,SignalCheck,Apps,AppsTests

# The folder that holds the scratch folders; empty when there can be none.
scratch_root() {
    if [[ -n ${EARSHOT_SCRATCH:-} ]]; then
        printf '%s' "$EARSHOT_SCRATCH"
    elif [[ -n ${XDG_CACHE_HOME:-} ]]; then
        printf '%s' "$XDG_CACHE_HOME/earshot"
    elif [[ -n ${HOME:-} ]]; then
        printf '%s' "$HOME/.cache/earshot"
    fi
}

# enter_scratch debug|release: sets SCRATCH and holds its lock, as descriptor 9, until leave_scratch or the script's end.
# Two builds in one folder would disturb each other; two clones share it in turn.
enter_scratch() {
    local configuration=$1 root key
    root=$(scratch_root)
    [[ $configuration != debug ]] || local EARSHOT_FAST=${EARSHOT_FAST:-$DEBUG_FAST}
    # The packages' versions, not the whole manifest: a target that is added there compiles no package anew. EARSHOT_CORE, EARSHOT_FUZZ and
    # EARSHOT_FAST change what the manifest says.
    key=$({ swift --version 2>/dev/null; echo "${EARSHOT_CORE:+core-$EARSHOT_CORE}${EARSHOT_FUZZ:+ fuzz}${EARSHOT_FAST:+ fast-$EARSHOT_FAST}"; grep -F '.package(url:' Package.swift; } | sha256sum | cut -c 1-12)
    SCRATCH=$root/$configuration-$key
    # Not by `test -w`: root may write what a read-only file system then refuses.
    if [[ -z $root ]] || ! mkdir -p "$SCRATCH" 2>/dev/null || ! touch "$SCRATCH/.used" 2>/dev/null; then
        SCRATCH=$PWD/.build-$configuration
        mkdir -p "$SCRATCH"
    else
        # A new manifest or toolchain leaves the old folder behind: gigabytes that nobody asks for again.
        find "$root" -mindepth 2 -maxdepth 2 -path "*/$configuration-????????????/.used" -mtime +14 -printf '%h\0' | xargs -0 -r rm -rf --
    fi
    exec 9>"$SCRATCH/.lock"
    if ! flock -n 9; then
        say "waiting for another build in $SCRATCH"
        flock 9
    fi
}

leave_scratch() { exec 9>&-; }

# built CONFIGURATION TASKS MINUTES FLAGS OF swift build: builds in $SCRATCH, and shows the share that is done. From nothing there are about TASKS
# tasks, which take about MINUTES on two cores.
built() {
    local mark=$SCRATCH/.built tasks=$2 code=0
    if [[ -e $mark || -n ${EARSHOT_CORE:-} ]]; then
        tasks=0
    else
        say "compiling everything for $1: about $3 minutes on two cores; later builds take only what has changed"
    fi
    swift build --scratch-path "$SCRATCH" "${@:4}" 9>&- 2>&1 | python3 scripts/progress.py "$tasks" >&2 || code=$?
    ((code)) || touch "$mark"
    return "$code"
}

# debug_build FLAGS OF swift build, release_build FLAGS OF swift build: with what all builds of a kind have in common. A release is one file that runs
# without a toolchain, and whose calls into the runtime are direct.
debug_build() { EARSHOT_FAST=${EARSHOT_FAST:-$DEBUG_FAST} built debug 4300 10 "${DEBUG_FLAGS[@]}" "$@"; }
release_build() { built release 1050 9 -c release --static-swift-stdlib "$@"; }

# build_tests: the debug build with all tests, in $SCRATCH.
#
# Without an index SwiftPM finds no tests, and needs a file that starts the test library. It is here only meanwhile: with it a plain `swift test` fails.
build_tests() {
    local code=0
    printf 'import Testing\n\nawait Testing.__swiftPMEntryPoint() as Never\n' >Tests/XCTMain.swift
    # Always the same time, so that nothing is compiled because of it.
    touch -d @0 Tests/XCTMain.swift
    trap 'rm -f Tests/XCTMain.swift' EXIT
    debug_build --build-tests || code=$?
    rm -f Tests/XCTMain.swift
    return "$code"
}
