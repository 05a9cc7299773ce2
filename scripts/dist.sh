# Sourced by the scripts that make packages, after build-env.sh: what they share.
# shellcheck shell=bash

# Where packages are put: EARSHOT_DIST, or dist in the clone.
# shellcheck disable=SC2034
DIST=$(realpath -m "${EARSHOT_DIST:-dist}")

# The program to package: EARSHOT_BINARY, or what `make release` builds. Prints its path.
program() {
    if [[ -n ${EARSHOT_BINARY:-} ]]; then
        realpath "$EARSHOT_BINARY"
    else
        scripts/release.sh | tail -n 1
    fi
}

# version BINARY: what `earshot --version` says, without the name. It is defined in Sources/Support/ServerVersion.swift alone.
version() { "$1" --version | sed 's/^earshot //'; }

# The time of the last commit: two packages of one commit are the same.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}
export SOURCE_DATE_EPOCH

# debian_version BINARY: the same for dpkg. A version before a release sorts before it, and later commits after earlier ones.
# EARSHOT_PACKAGE_VERSION says another.
debian_version() {
    local text
    if [[ -n ${EARSHOT_PACKAGE_VERSION:-} ]]; then
        printf '%s' "$EARSHOT_PACKAGE_VERSION"
        return
    fi
    text=$(version "$1")
    if [[ $text == *-* ]]; then
        text="${text/-/\~}+$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y%m%d.%H%M).$(git rev-parse --short=8 HEAD 2>/dev/null || echo local)"
    fi
    printf '%s' "$text"
}

# made FILE…: prints the file's name and size.
made() {
    local file
    for file; do
        printf '%8s  %s\n' "$(numfmt --to=iec --suffix=B "$(stat -c %s "$file")")" "${file#"$PWD"/}"
    done
}
