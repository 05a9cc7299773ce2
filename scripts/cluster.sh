#!/usr/bin/env bash
# A PostgreSQL and three servers that share it, nodes a, b and c of a cluster, on this machine, until Ctrl-C; prints where each is and what to
# try. A node that is killed is started again after a while. Everything goes at the end: processes, data, database.
# CLUSTER_PORT=N     the nodes' ports are N to N+5, PostgreSQL's is N+6; without, free ones
# CLUSTER_SECONDS=N  ends by itself, so many seconds after all are there
# CLUSTER_BIN=DIR    the folder of a program that is built already
set -euo pipefail
cd "$(dirname "$0")/.."

# Seconds until a killed node is started again: by then another has ended its pushes.
back=20
seconds=${CLUSTER_SECONDS:-}
port=${CLUSTER_PORT:-}
say() { printf 'cluster: %s\n' "$*"; }
if [[ -n $seconds && ! $seconds =~ ^[1-9][0-9]{0,5}$ ]]; then
    echo "cluster: CLUSTER_SECONDS must be a whole number of seconds, not \"$seconds\"" >&2
    exit 2
fi
if [[ -n $port ]] && ! { [[ $port =~ ^[1-9][0-9]{0,4}$ ]] && ((port <= 65529)); }; then
    echo "cluster: CLUSTER_PORT must be a port up to 65529, not \"$port\"" >&2
    exit 2
fi

scripts/packages.sh postgres
scripts/packages.sh demo
if [[ -n ${CLUSTER_BIN:-} ]]; then
    bin=$(realpath "$CLUSTER_BIN")
else
    say "builds the server, which takes some minutes the first time"
    bin=$(scripts/build.sh release earshot)
fi

names=(a b c)
work=$(mktemp -d)
declare -A pid=() rtmp=() http=() ended=() console=()
stopped='' database=''
# Background jobs of a script do not get the terminal's Ctrl-C: they end here, in order, each by its own id.
gone() { [[ -z $1 ]] || ! kill -0 "$1" 2>/dev/null; }
# One that was stopped gets its SIGTERM when it goes on.
stop() {
    local tries=60
    gone "$1" || kill -s CONT "$1" 2>/dev/null || true
    until gone "$1"; do
        if ((tries-- == 0)); then kill -9 "$1" 2>/dev/null || true; fi
        sleep 0.1
    done
}
cleanup() {
    local name
    trap '' INT TERM HUP
    for name in "${!pid[@]}"; do gone "${pid[$name]}" || kill "${pid[$name]}" 2>/dev/null || true; done
    for name in "${!pid[@]}"; do stop "${pid[$name]}"; done
    [[ -z $database ]] || scripts/postgres.sh stop "$work/postgres" || true
    rm -rf "$work"
}
trap cleanup EXIT
trap 'stopped=1' INT TERM HUP

fail() {
    echo "cluster: $1" >&2
    if [[ -n ${2:-} && -s $2 ]]; then tail -n 15 "$2" >&2; fi
    exit 1
}
# Before each step that takes long: a signal that came meanwhile.
go_on() { [[ -z $stopped ]] || exit 0; }

# taken PORT: whether something listens there. What else holds a port shows when a server starts.
taken() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }
if [[ -n $port ]]; then
    for offset in {0..6}; do
        ! taken $((port + offset)) || fail "port $((port + offset)) of 127.0.0.1 is taken; CLUSTER_PORT names the first of seven that are free"
    done
fi

# --- The database. It goes with this script, also after a kill -9.
go_on
say "starts PostgreSQL"
database=1
url=$(EARSHOT_POSTGRES_OWNER=$$ scripts/postgres.sh start "$work/postgres" ${port:+$((port + 6))}) || fail "PostgreSQL did not start"
key=$(od -An -N48 -tx1 /dev/urandom | tr -d ' \n')

# --- The nodes. setpriv ends them with this script.
# start NAME RTMP-PORT HTTP-PORT: sets the node's addresses.
start() {
    local name=$1 ends=$((SECONDS + 30)) banner=$work/$1.banner
    EARSHOT_DATABASE_URL=$url EARSHOT_CLUSTER_KEY=$key EARSHOT_CLUSTER_NAME=$name setpriv --pdeathsig TERM -- \
        "$bin/earshot" serve --rtmp "127.0.0.1:$2" --http "127.0.0.1:$3" --data "$work/$name" >"$banner" 2>>"$work/$name.log" &
    pid[$name]=$!
    # So that bash does not tell of its end.
    disown "$!"
    until grep -qs '^Stop with' "$banner"; do
        go_on
        if gone "${pid[$name]}" || ((SECONDS >= ends)); then fail "node $name did not start" "$work/$name.log"; fi
        sleep 0.1
    done
    rtmp[$name]=$(grep -oE 'rtmp://[^/ ]+:[0-9]+' "$banner" | head -n 1)
    http[$name]=$(grep -oE 'http://[^/ ]+:[0-9]+' "$banner" | head -n 1)
    console[$name]=$(sed -n 's/^ *console //p' "$banner")
}
for index in "${!names[@]}"; do
    go_on
    say "starts node ${names[index]}"
    if [[ -n $port ]]; then start "${names[index]}" $((port + 2 * index)) $((port + 2 * index + 1)); else start "${names[index]}" 0 0; fi
done

token=$work/a/admin-token
for name in "${names[@]}"; do
    cat <<END

node $name   process ${pid[$name]}, log $work/$name.log
  push    ${rtmp[$name]}/live/cam1
  play    ${rtmp[$name]}/live/cam1   ${http[$name]}/live/cam1.flv   ${http[$name]}/live/cam1.m3u8
  API     ${http[$name]}/api/v1/rooms   (token in $token)
  console ${console[$name]}
          once, within five minutes; later: earshot console --server ${http[$name]}
END
done
cat <<END

Try it, in another terminal. Rooms, bans and events are the same on all nodes; a stream is played where it is pushed.
  export EARSHOT_TOKEN=\$(cat $token)
  earshot() { $bin/earshot "\$@"; }
  push() { ffmpeg -v error -re -f lavfi -i testsrc2=size=640x360:rate=25 -c:v libx264 -preset veryfast -pix_fmt yuv420p -g 50 -f flv "\$1"; }
  push ${rtmp[a]}/live/cam1 &                              # a device pushes to node a
  earshot rooms list --server ${http[c]}                 # node c knows of it
  earshot rooms forbid cam1 --for 1m --server ${http[c]} # forbidden on c: cut on a
  earshot rooms resume cam1 --server ${http[b]}
  push ${rtmp[a]}/live/cam1 &
  kill -9 ${pid[a]}                                                    # node a is gone …
  push ${rtmp[b]}/live/cam1 &                              # … and the device pushes to b
  earshot events list --server ${http[b]}
PostgreSQL is at ${url##*@}; its address with the password: EARSHOT_DATABASE_URL of each node's process.
Stop with Ctrl-C.
END

SECONDS=0
while [[ -z $stopped ]] && { [[ -z $seconds ]] || ((SECONDS < seconds)); }; do
    sleep 0.2
    for name in "${names[@]}"; do
        if [[ -z ${ended[$name]:-} ]]; then
            if gone "${pid[$name]}"; then
                ended[$name]=$SECONDS
                say "node $name has ended, and is started again in $back s; the others go on"
            fi
        elif ((SECONDS >= ended[$name] + back)); then
            ended[$name]=
            start "$name" "${rtmp[$name]##*:}" "${http[$name]##*:}"
            say "node $name is back, process ${pid[$name]}"
        fi
    done
done
