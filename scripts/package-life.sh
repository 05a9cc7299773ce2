#!/usr/bin/env bash
# package-life.sh BINARY: packs a program, without its symbols, and runs the package's life in a clean Debian: `make package-test` for a program that
# was built already. Says why and ends with 0 where that is impossible: without root, or without a mirror of Debian.
set -euo pipefail
binary=$(realpath "${1:?usage: package-life.sh BINARY}")
. "$(dirname "$0")/build-env.sh"

# The address from which apt would install this Debian's packages.
mirror() {
    local codename
    codename=$(. /etc/os-release && printf '%s' "${VERSION_CODENAME:-}")
    # shellcheck disable=SC2016
    apt-get indextargets --format '$(RELEASE) $(SITE)' 'Created-By: Packages' | sed -n "s/^$codename //p" | head -n 1 | sed "s|\$|/dists/$codename/InRelease|"
}

not_tried() {
    say "the package's life was not tried: $*"
    exit 0
}

[[ $(id -u) = 0 ]] || not_tried "it needs root, for mounts and namespaces"
command -v apt-get >/dev/null || not_tried "this is no Debian"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# apt's own program for it, with its proxies.
url=$(mirror)
if [[ -z $url ]] || ! timeout 60 /usr/lib/apt/apt-helper download-file "$url" "$work/InRelease" >"$work/log" 2>&1; then
    not_tried "no mirror of Debian answers at ${url:-any address of this machine}"
fi
scripts/packages.sh package-test
objcopy --strip-all "$binary" "$work/earshot"
# Small does not matter here.
export EARSHOT_BINARY=$work/earshot EARSHOT_DIST=$work/dist DPKG_DEB_COMPRESSOR_TYPE=gzip DPKG_DEB_COMPRESSOR_LEVEL=1
# The toolchain's libraries, which a debug build loads, are in no package.
export EARSHOT_SHLIBDEPS=--ignore-missing-info
scripts/deb.sh
python3 Tests/Package life "$work"/dist/earshot_*.deb
