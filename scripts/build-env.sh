# Sourced by the other scripts, in bash with `set -euo pipefail`; goes to the clone's root.
#
# Builds are kept outside the clone, one folder per configuration, toolchain and manifest, so that a fresh clone finds what an
# earlier one built:  ${EARSHOT_SCRATCH:-${XDG_CACHE_HOME:-~/.cache}/earshot}/<debug|release|thread|address>-<hash>
# Where that cannot be written, .build-<debug|release|…> within the clone serves.
# shellcheck shell=bash

# The targets that are tested under the address sanitizer and fuzzed, and what they depend on (EARSHOT_CORE).
# shellcheck disable=SC2034
ADDRESS_CORE=LibC,CFileStatus,Support,Media,RTMP,HLS,Talk,FFmpeg,Upstream,Health,Relay,CFFmpeg,CLibRTMP,COpenSSL,HLSCheck,SignalCheck,MediaClips,TestSupport,CZlib

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit

say() { printf 'earshot: %s\n' "$*" >&2; }

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
    # EARSHOT_CORE, EARSHOT_FUZZ and EARSHOT_FAST change what the manifest says.
    key=$({ swift --version 2>/dev/null; echo "${EARSHOT_CORE:+core-$EARSHOT_CORE}${EARSHOT_FUZZ:+ fuzz}${EARSHOT_FAST:+ fast-$EARSHOT_FAST}"; cat Package.swift; } | sha256sum | cut -c 1-12)
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
