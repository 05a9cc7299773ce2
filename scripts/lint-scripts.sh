#!/usr/bin/env bash
# lint-scripts.sh: shell scripts by shellcheck; Python sources must compile.
set -euo pipefail
cd "$(dirname "$0")/.."
mapfile -t scripts < <(git ls-files '*.sh' .ci/run)
# SC2317: functions that only a trap calls are taken for unreachable.
shellcheck --exclude=SC2317 --external-sources --source-path=SCRIPTDIR "${scripts[@]}"
mapfile -t sources < <(git ls-files '*.py')
python3 - "${sources[@]}" <<'PY'
import sys

for path in sys.argv[1:]:
    with open(path, encoding="utf-8") as source:
        compile(source.read(), path, "exec")
PY
