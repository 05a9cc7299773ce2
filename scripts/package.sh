#!/usr/bin/env bash
# package.sh: the Debian package, the archive and the program's symbols, in dist/. Says what was made.
set -euo pipefail
. "$(dirname "$0")/build-env.sh"
. scripts/dist.sh
EARSHOT_BINARY=$(program)
export EARSHOT_BINARY
scripts/deb.sh
scripts/archive.sh
(cd "$DIST" && sha256sum -- *.deb *.gz >SHA256SUMS)
made "$DIST/SHA256SUMS"
