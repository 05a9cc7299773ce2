#!/usr/bin/env bash
# mutants.sh [COUNT [SEED [FILES]]]: whether the tests notice small changes of their source: limits one higher or lower,
# comparisons and branches the wrong way round, checks and early exits left out. COUNT (200) changes are drawn by SEED (1) from the
# files whose path the regular expression FILES finds (all). They are compiled into a copy of the tree all at once, each behind a switch; then
# the floor's tests run once for each. FILES that name a service (such as Sources/RTMPServer) are compiled with all services. Fails when more than a tenth survives that Tests/Mutants/explained.txt does not explain.
# mutants.sh again: runs those that survived the last time, with the tests as they are now.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/packages.sh build
floors='^Sources/(Media|RTMP|HLS|Talk|Trace|Rooms|Store|RoomRegistry|Apps|Relay|LinkTransport)/'
files=${3:-$floors}
export EARSHOT_CORE=LibC,Support,CFileStatus,Media,RTMP,HLS,Talk,Trace,Rooms,Store,RoomRegistry,Apps,Health,Sockets,Relay,LinkTransport,CLibPQ,CLibRTMP,COpenSSL,HLSCheck,SignalCheck,TestSupport,RoomTestSupport,PostgresTestSupport
if [[ $files =~ HTTPServer|RTMPServer|Talkback|AppServer|ControlAPI|HTTPAPI ]]; then
    # All but the tests of whole servers, which take five minutes to compile, and what is not copied.
    EARSHOT_CORE=$(EARSHOT_CORE='' swift package dump-package | python3 -c 'import json, sys; print(",".join(target["name"] for target in json.load(sys.stdin)["targets"] if target["name"] != "EndToEndTests" and not (target.get("path") or "").startswith("Benchmarks")))')
fi
# Two hundred times the same tests: what computes in them is optimised.
export EARSHOT_FAST=Media,Apps,Rooms,RTMP,HLS,Talk,Relay,TalkTests,RelayTests,AppsTests,SignalCheck
. scripts/build-env.sh

clone=$PWD
enter_scratch mutants
say "the tests of the tool itself"
swift test --package-path Tests/Mutants --scratch-path "$SCRATCH/tool" 9>&-
tool=$(swift build --package-path Tests/Mutants --scratch-path "$SCRATCH/tool" --show-bin-path 9>&-)/mutants

step=run
if [[ ${1:-} == again ]]; then
    step=again
    "$tool" refresh "$clone" "$SCRATCH"
else
    "$tool" draw "$clone" "$SCRATCH" "${1:-200}" "${2:-1}" "$files"
fi

# A change that does not compile is taken out; then the rest is built. What one such hides shows in the next round.
for ((round = 1; ; round++)); do
    say "build, round $round"
    if swift build --build-tests --package-path "$SCRATCH/copy" --scratch-path "$SCRATCH/build" 9>&- >"$SCRATCH/build.log" 2>&1; then break; fi
    if ! "$tool" drop "$clone" "$SCRATCH" "$SCRATCH/build.log" || ((round == 30)); then
        grep -E 'error' "$SCRATCH/build.log" | sort -u | head -n 20 >&2
        say "the copy with the mutants does not build; see $SCRATCH/build.log"
        exit 1
    fi
done
binaries=$(swift build --package-path "$SCRATCH/copy" --scratch-path "$SCRATCH/build" --show-bin-path 9>&-)
exec nice -n 10 "$tool" "$step" "$clone" "$SCRATCH" "$binaries/earshotPackageTests.xctest" 9>&-
