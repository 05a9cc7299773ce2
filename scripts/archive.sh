#!/usr/bin/env bash
# archive.sh: makes dist/earshot-VERSION-linux-ARCHITECTURE.tar.gz, which runs where it is unpacked, and beside it the symbols of the
# program, from what `make release` builds, or from EARSHOT_BINARY.
set -euo pipefail
. "$(dirname "$0")/build-env.sh"
. scripts/dist.sh
binary=$(program)
name=earshot-$(version "$binary")-linux-$(uname -m)
say "packing $name.tar.gz"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
scripts/install-tree.sh "$binary" "$work/$name" ""
# Beside the program, where somebody who unpacks it looks.
mv "$work/$name/share/doc/earshot"/* "$work/$name/"
rmdir "$work/$name/share/doc/earshot" "$work/$name/share/doc"
install -m 755 deploy/run "$work/$name/run"
rm -f "$work/$name/deploy/run"
install -m 644 deploy/earshot.yaml "$work/$name/earshot.yaml"
mkdir -p "$DIST"
rm -f "$DIST"/earshot-*-linux-"$(uname -m)".{tar.gz,debug.gz}
tar --create --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" --directory "$work" "$name" |
    gzip -n >"$DIST/$name.tar.gz"
made "$DIST/$name.tar.gz"
if [[ -e ${binary%/*}/earshot.debug ]]; then
    gzip -n -c "${binary%/*}/earshot.debug" >"$DIST/$name.debug.gz"
    made "$DIST/$name.debug.gz"
fi
