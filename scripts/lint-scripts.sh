#!/usr/bin/env bash
# lint-scripts.sh: shell scripts by shellcheck; Python sources must compile; faults to plant have their places in the sources.
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
PYTHONPATH=Tests/Planted python3 - <<'PY'
import pathlib
import sys

import faults

wrong = [f"Tests/Planted/faults.py: {fault.name}: {problem}" for fault in faults.ALL if (problem := fault.misplaced(pathlib.Path(".")))]
sys.exit("\n".join(wrong) or None)
PY
