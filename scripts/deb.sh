#!/usr/bin/env bash
# deb.sh: makes dist/earshot_VERSION_ARCHITECTURE.deb from the program that `make release` builds, or from EARSHOT_BINARY, without network.
set -euo pipefail
. "$(dirname "$0")/build-env.sh"
. scripts/dist.sh
binary=$(program)
version=$(debian_version "$binary")
architecture=$(dpkg --print-architecture)
say "packing earshot_${version}_$architecture.deb"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tree=$work/earshot
mkdir -p "$tree/payload/etc/earshot"
cp -r deploy/debian "$tree/debian"
install -m 644 deploy/earshot.service "$tree/debian/earshot.service"
scripts/install-tree.sh "$binary" "$tree/payload" /usr
# Its place in Debian is the file copyright.
rm "$tree/payload/usr/share/doc/earshot/LICENSE"
scripts/installed-yaml.sh "$tree/payload/etc/earshot/earshot.yaml"
cat >"$tree/debian/changelog" <<END
earshot ($version) unstable; urgency=medium

  * CHANGELOG.md says what is in it.

 -- $(sed -n 's/^Maintainer: //p' deploy/debian/control)  $(date -u -R -d "@$SOURCE_DATE_EPOCH")
END
if ! (cd "$tree" && dpkg-buildpackage --build=binary --no-sign -d) >"$work/log" 2>&1; then
    tail -n 30 "$work/log" >&2
    say "the package could not be built; the lines above say why"
    exit 1
fi
mkdir -p "$DIST"
rm -f "$DIST"/earshot_*_"$architecture.deb"
mv "$work/earshot_${version}_$architecture.deb" "$DIST/"
made "$DIST/earshot_${version}_$architecture.deb"
