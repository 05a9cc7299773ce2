#!/usr/bin/env bash
# Removes what was built, here and in the scratch folder, and nothing else that may lie there.
set -euo pipefail
. "$(dirname "$0")/build-env.sh"

rm -rf .build .build-{debug,release,thread,address,mutants}
root=$(scratch_root)
for folder in "$root"/{debug,release,thread,address,mutants}-????????????; do
    [[ -n $root && -f $folder/.used ]] || continue
    say "removing $folder"
    rm -rf "$folder"
done
