#!/usr/bin/env bash
# test.sh [FLAGS OF swift test]: formatting, imports, build, all tests; says how long each took. With flags only the tests that they choose.
# Without, also rooms and servers on PostgreSQL, the demo and the cluster, the loaded server alone, histories of calls, a short torture, the console in a browser, apps' clients, metrics in a Prometheus, what
# documents name, what packages bring, a package's life in a clean Debian, real players, the parts under the sanitizers, kept and new fuzz inputs, and the budgets of instructions and allocations. A test that fails fails the run; what failed is told again at the end.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/packages.sh test
. scripts/build-env.sh
. scripts/steps.sh

step lint swift format lint --strict --parallel --recursive Package.swift Sources Tests Benchmarks
step scripts scripts/lint-scripts.sh
step imports scripts/check_imports.py
step "target graph" scripts/target_graph.py
# The demo, for a few seconds: pictures are decoded, and the console's address is printed.
demo() {
    DEMO_SECONDS=6 DEMO_BIN=$SCRATCH/debug scripts/demo.sh | tee "$RESULTS/demo" || return
    grep -q '^demo: console http://.*&page=/rooms/demo$' "$RESULTS/demo"
}
# Three servers on one database, for a moment: each says where it is, and nothing stays.
cluster() {
    local token ids port
    CLUSTER_SECONDS=2 CLUSTER_BIN=$SCRATCH/debug scripts/cluster.sh | tee "$RESULTS/cluster" || return
    (($(grep -c '^node [abc] ' "$RESULTS/cluster") == 3)) || return
    token=$(sed -n 's/.*(token in \(.*\))$/\1/p' "$RESULTS/cluster" | head -n 1)
    ids=$(sed -n 's/^node [abc] *process \([0-9]*\),.*/\1/p' "$RESULTS/cluster")
    port=$(sed -n 's|^PostgreSQL is at 127.0.0.1:\([0-9]*\)/.*|\1|p' "$RESULTS/cluster")
    [[ -n $token && ! -e ${token%/a/admin-token} && $(wc -w <<<"$ids") == 3 && -n $port ]] || return
    # shellcheck disable=SC2086
    ! kill -0 $ids 2>/dev/null || return
    ! (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null
}
# on_postgres FLAGS OF swift test: with rooms on a PostgreSQL of their own. It goes with this script, however that ends.
on_postgres() {
    local folder=$RESULTS/postgres url code=0
    url=$(EARSHOT_POSTGRES_FAST=1 EARSHOT_POSTGRES_OWNER=$$ scripts/postgres.sh start "$folder") || return
    EARSHOT_STORE=postgres EARSHOT_TEST_POSTGRES=$url run_tests "$@" || code=$?
    scripts/postgres.sh stop "$folder" || code=1
    return "$code"
}
# Restarts, kills, calls, pushes, webhooks, feeds, tokens; two servers on one database.
SERVERS='EndToEndTests.(APIRoomTests|KillRestartTests|PushRateClientsTests|WebhookDeliveryTests|WebSocketEventsTests|CLITokenTests|APIAuditTests|PostgresServerTests|Cluster(Node|Call)Tests)'
enter_scratch debug
step build swift build --build-tests --scratch-path "$SCRATCH" 9>&-
if (($#)); then
    step tests run_tests "$@"
    finish
fi
# Apart: what computes for seconds on the threads that tests share would keep the servers, and the links to them, from answering.
attempt "tests of the parts" run_tests --skip EndToEndTests --skip UpstreamTests
attempt "tests of the links" run_tests --filter UpstreamTests
attempt "rooms on PostgreSQL" on_postgres --filter RoomStoreTests
attempt "server on PostgreSQL" on_postgres --filter "$SERVERS"
attempt "tests of the server" run_tests --filter EndToEndTests --skip LoadedServer
# These load both cores.
attempt "loaded server" run_tests --filter LoadedServerTests
attempt histories python3 Tests/Histories --ci --earshot "$SCRATCH/debug/earshot" 9>&-
attempt torture python3 Tests/Torture --ci --earshot "$SCRATCH/debug/earshot" --load "$SCRATCH/debug/earshot-load" 9>&-
attempt demo demo 9>&-
attempt cluster cluster 9>&-
attempt documents scripts/docs-check.sh "$SCRATCH/debug/earshot" 9>&-
attempt console python3 Tests/Console --earshot "$SCRATCH/debug/earshot" 9>&-
attempt apps python3 Tests/Apps --earshot "$SCRATCH/debug/earshot" 9>&-
attempt metrics python3 Tests/Metrics --earshot "$SCRATCH/debug/earshot" 9>&-
attempt package python3 Tests/Package --earshot "$SCRATCH/debug/earshot" 9>&-
attempt "package's life" scripts/package-life.sh "$SCRATCH/debug/earshot" 9>&-
attempt players python3 Tests/Players --ci --earshot "$SCRATCH/debug/earshot" 9>&-
leave_scratch
attempt "address sanitizer" scripts/sanitize.sh address
attempt fuzzing scripts/fuzz.sh ci
attempt "thread sanitizer" scripts/sanitize.sh thread
attempt budgets Benchmarks/budget.sh
finish
