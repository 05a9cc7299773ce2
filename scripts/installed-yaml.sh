#!/usr/bin/env bash
# installed-yaml.sh FILE: writes the settings of an installed service: deploy/earshot.yaml, with the data in /var/lib/earshot.
set -euo pipefail
file=${1:?usage: installed-yaml.sh FILE}
cd "$(dirname "$0")/.."
sed 's|^  #directory: /var/lib/earshot$|  directory: /var/lib/earshot|' deploy/earshot.yaml >"$file"
if ! grep -q '^  directory: /var/lib/earshot$' "$file"; then
    printf 'earshot: deploy/earshot.yaml has no line "  #directory: /var/lib/earshot" under data any more; mend scripts/installed-yaml.sh\n' >&2
    exit 1
fi
