#!/usr/bin/env bash
# try-cluster.sh: three servers of the debug build in $SCRATCH on one database, for a moment: each says where it is, and nothing stays.
set -euo pipefail
cd "$(dirname "$0")/.."
output=$(mktemp)
trap 'rm -f "$output"' EXIT
fail() {
    echo "error: $1" >&2
    exit 1
}
CLUSTER_SECONDS=2 CLUSTER_BIN=$SCRATCH/debug scripts/cluster.sh | tee "$output"
(($(grep -c '^node [abc] ' "$output") == 3)) || fail "three nodes are to say where they are"
token=$(sed -n 's/.*(token in \(.*\))$/\1/p' "$output" | head -n 1)
mapfile -t ids < <(sed -n 's/^node [abc] *process \([0-9]*\),.*/\1/p' "$output")
port=$(sed -n 's|^PostgreSQL is at 127.0.0.1:\([0-9]*\)/.*|\1|p' "$output")
[[ -n $token && ${#ids[@]} == 3 && -n $port ]] || fail "the token's file, three processes and PostgreSQL's port are to be printed"
[[ ! -e ${token%/a/admin-token} ]] || fail "${token%/a/admin-token} is still there"
if kill -0 "${ids[@]}" 2>/dev/null; then fail "a node still runs: ${ids[*]}"; fi
if (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then fail "PostgreSQL still listens on port $port"; fi
