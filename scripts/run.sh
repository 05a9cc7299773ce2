#!/usr/bin/env bash
# run.sh [FLAGS OF earshot serve]: builds the server and becomes it.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/packages.sh build
bin=$(scripts/build.sh release earshot)
# Its data stays in the clone, unless a flag or setting says otherwise.
mkdir -p -m 700 earshot-data
exec "$bin/earshot" serve "$@"
