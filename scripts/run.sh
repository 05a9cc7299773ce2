#!/usr/bin/env bash
# run.sh [FLAGS OF earshot serve]: builds the server and becomes it.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/packages.sh build
bin=$(scripts/build.sh release earshot)
exec "$bin/earshot" serve "$@"
