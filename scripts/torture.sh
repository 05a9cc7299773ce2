#!/usr/bin/env bash
# Torture of a release build (Tests/Torture/README.md): torture.sh [ARGUMENTS OF THE SUITE]. EARSHOT_BIN and LOAD_BIN name other binaries.
# The long form goes on with 100,000 calls of the API and their checker (Tests/Histories), and the tests of services and whole servers under
# both sanitizers; --kind, --ci and --share leave these out.
set -euo pipefail
. "$(dirname "$0")/build-env.sh"
scripts/packages.sh test
if [[ -z ${EARSHOT_BIN:-} ]]; then
    bin=$(scripts/build.sh release earshot earshot-load)
    EARSHOT_BIN=$bin/earshot
    LOAD_BIN=${LOAD_BIN:-$bin/earshot-load}
fi
export EARSHOT_BIN LOAD_BIN=${LOAD_BIN:-}
failed=()
python3 Tests/Torture "$@" || failed+=(torture)
case " $* " in
*" --kind "* | *" --ci "* | *" --share "* | *" -h "* | *" --help "*) ;;
*)
    python3 Tests/Histories || failed+=(histories)
    scripts/sanitize.sh address server || failed+=("address sanitizer")
    scripts/sanitize.sh thread server || failed+=("thread sanitizer")
    ;;
esac
((${#failed[@]} == 0)) || { say "failed: $(printf '%s, ' "${failed[@]}" | sed 's/, $//')"; exit 1; }
