#!/usr/bin/env bash
# postgres.sh start DIR [PORT]: starts a new, empty PostgreSQL for tests and prints its URL, which is all that stands in its output.
# postgres.sh stop DIR: stops it and removes what start made, whether or not it still runs.
# postgres.sh kill DIR: ends its processes with -9, all at once, as a power cut would; the data stays.
# postgres.sh again DIR: starts it on its data, with the same URL, after a kill.
# postgres.sh standby DIR OF [PORT]: starts a synchronous standby of the server in the folder OF, and prints its ADDRESS:PORT. It has the same role,
# password and database. From then on OF's server answers no commit before the standby has it on its disk.
# postgres.sh promote DIR: makes a standby a server that writes; it waits for no standby until it has one.
# postgres.sh run COMMAND…: runs COMMAND with the URL of such a server in EARSHOT_TEST_POSTGRES; stops the server when COMMAND ends, and exits
# with its code. When postgres.sh is killed, with -9 too, the server follows within seconds.
#
# It listens on 127.0.0.1 and on a socket in DIR/cluster/. The role earshot owns the database earshot and may create others; it is no superuser.
# EARSHOT_POSTGRES_FAST=1   nothing waits for the disk: for tests that cut no power
# EARSHOT_POSTGRES_OWNER=ID start, standby: the server is stopped and removed when this process has ended
# EARSHOT_POSTGRES_LISTEN=ADDRESS/BITS start, standby: it listens on this address too, for clients of its network
set -euo pipefail

self=$(realpath "${BASH_SOURCE[0]}")
least=15

die() {
    printf 'postgres: %s\n' "$*" >&2
    exit 1
}

# Sets bin, the folder of the newest PostgreSQL's programs.
find_programs() {
    local found
    found=$(compgen -G '/usr/lib/postgresql/*/bin/initdb' | sort -V | tail -n 1) || found=$(command -v initdb) || return 1
    bin=${found%/*}
}

need_programs() {
    local version
    find_programs || { "${self%/*}/packages.sh" postgres && find_programs; } || die "there is no PostgreSQL here: no initdb below /usr/lib/postgresql or in PATH"
    version=$(env --chdir=/ "$bin/initdb" --version | sed -n 's/.*) \([0-9]*\).*/\1/p')
    ((${version:-0} >= least)) || die "$bin has PostgreSQL ${version:-of no known version}; $least or later is needed"
}

# become USER GROUP: what as_server runs is run as this user. PostgreSQL refuses root, and cannot work in a folder that it may not read.
# The caller's settings for other servers do not hold for this one, and its messages are in English: listen reads them.
become() {
    as=(env --chdir=/)
    for name in "${!PG@}"; do as+=(--unset="$name"); done
    as+=(LC_ALL=C)
    [[ $(id -u) != 0 ]] || as+=(setpriv --reuid="$1" --regid="$2" --clear-groups)
}
as_server() { "${as[@]}" "$@"; }

# Without the caller's descriptors: a server that held a pipe open would keep its reader waiting.
detached() {
    (
        for descriptor in /proc/self/fd/*; do
            descriptor=${descriptor##*/}
            ((descriptor < 3 || descriptor == 255)) || eval "exec $descriptor>&-"
        done
        exec "$@" </dev/null >>"$cluster/log" 2>&1
    )
}

# born ID: when the process began, which tells it from a later one of the same number. Fails when it has ended.
born() {
    local line fields
    { read -r line <"/proc/$1/stat"; } 2>/dev/null || return 1
    read -ra fields <<<"${line##*) }"
    [[ ${fields[0]} != [ZX] ]] || return 1
    printf '%s' "${fields[19]}"
}

# The server's processes, each of which works in its data folder; found so, none is mistaken for another's, and none is missed when the first is dead.
processes() {
    as_server find /proc -mindepth 2 -maxdepth 2 -name cwd -lname "*/${cluster##*/}/data*" -printf '%h\n' 2>/dev/null | sed 's|/proc/||' || true
}

# Ends the server: fast, then immediately, then by force. A process whose server is dead ends at any of these signals.
end() {
    local step signal ends first=''
    for step in INT:10 QUIT:3 KILL:5; do
        signal=${step%:*}
        ends=$((SECONDS + ${step#*:}))
        mapfile -t running < <(processes)
        ((${#running[@]})) || return 0
        # The first one tells the others, but does not when it is killed.
        [[ $signal == KILL || ! -r $cluster/data/postmaster.pid ]] || read -r first <"$cluster/data/postmaster.pid" || true
        if [[ $signal != KILL && " ${running[*]} " == *" $first "* ]]; then running=("$first"); fi
        as_server kill -s "$signal" "${running[@]}" 2>/dev/null || true
        while ((SECONDS < ends)) && [[ -n $(processes) ]]; do sleep 0.1; done
    done
    [[ -z $(processes) ]]
}

# Sets cluster, the folder that start made. It has a name that no other has, and DIR/cluster leads to it.
find_cluster() { cluster=$(readlink "$1/cluster") && [[ $cluster == /*/earshot-postgres.?????? ]]; }

# remove DIR: ends the server whose folder is $cluster, and removes all that start made.
remove() {
    local owner segment made=''
    if [[ -d $cluster ]]; then
        owner=$(stat -c %u "$cluster")
        [[ $(id -u) == 0 || $(id -u) == "$owner" ]] || die "the server in $1 is another user's"
        become "$owner" "$(stat -c %g "$cluster")"
        end || die "the server in $1 does not end; its processes: $(processes | xargs)"
        # What a server that was killed leaves in the kernel.
        segment=$(sed -n '7s/.* //p' "$cluster/data/postmaster.pid" 2>/dev/null) || true
        [[ -z $segment ]] || as_server ipcrm --shmem-id "$segment" 2>/dev/null || true
        [[ ! -e $cluster/made-dir ]] || made=1
        rm -rf "$cluster"
    fi
    [[ $(readlink "$1/cluster") != "$cluster" ]] || rm -f "$1/cluster"
    [[ -z $made ]] || rmdir "$1" 2>/dev/null || true
}

# make_cluster DIR MADE: sets cluster, and user. It is in DIR if the server's user can get there, for which mktemp's folders of root are closed; otherwise where temporary files are.
make_cluster() {
    local place
    user=$(id -un 2>/dev/null) || die "the user $(id -u) has no name, without which initdb does nothing"
    if [[ $(id -u) == 0 ]]; then
        user=postgres
        id -u "$user" >/dev/null 2>&1 || user=nobody
    fi
    become "$(id -u "$user")" "$(id -g "$user")"
    for place in "$1" "$(realpath "${TMPDIR:-/tmp}")" /tmp; do
        if as_server test -x "$place"; then break; fi
    done
    cluster=$(mktemp -d "$place/earshot-postgres.XXXXXX" 2>/dev/null) || die "no folder can be made in $place"
    ln -s "$cluster" "$1/cluster" 2>/dev/null || { rmdir "$cluster"; die "$1 cannot be written"; }
    [[ -z $2 ]] || touch "$cluster/made-dir"
    : >"$cluster/log"
    mkdir -m 700 "$cluster/data"
    if [[ $(id -u) == 0 ]]; then chown -R "$(id -u "$user"):$(id -g "$user")" "$cluster"; fi
    # All of the server's programs begin where `processes` finds them.
    as+=(env --chdir="$cluster/data")
}

# The superuser has no password: over the socket it is the server's own user, and nobody over TCP.
initialize() {
    local options=()
    [[ -z ${EARSHOT_POSTGRES_FAST:-} ]] || options=(--no-sync)
    detached "${as[@]}" "$bin/initdb" --pgdata=. --username=postgres --encoding=UTF8 --locale=C --auth-local=peer --auth-host=reject "${options[@]}" ||
        die "initdb failed: $(grep . "$cluster/log" | tail -n 1)"
    cat >"$cluster/data/pg_hba.conf" <<END
local all postgres peer map=server
local all all scram-sha-256
local replication postgres peer map=server
END
    printf 'host %s all %s scram-sha-256\n' all 127.0.0.1/32 replication 127.0.0.1/32 >>"$cluster/data/pg_hba.conf"
    [[ -z $network ]] || printf 'host %s all %s scram-sha-256\n' all "$network" replication "$network" >>"$cluster/data/pg_hba.conf"
    printf 'server "%s" postgres\n' "$user" >"$cluster/data/pg_ident.conf"
    # The socket's folder is as seen from the data folder. Memory in files goes with the folder, even after a kill -9.
    cat >>"$cluster/data/postgresql.conf" <<END
listen_addresses = '$addresses'
unix_socket_directories = '..'
max_connections = 400
dynamic_shared_memory_type = mmap
cluster_name = '${cluster##*/}'
END
    [[ -z ${EARSHOT_POSTGRES_FAST:-} ]] || printf '%s = off\n' fsync synchronous_commit full_page_writes >>"$cluster/data/postgresql.conf"
    password=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
    # Without a server: nobody else can be connected yet. Whether it worked shows when the role connects.
    printf '%s\n' "CREATE ROLE earshot LOGIN CREATEDB PASSWORD '$password'" "CREATE DATABASE earshot OWNER earshot" |
        as_server "$bin/postgres" --single -D . postgres >/dev/null 2>>"$cluster/log" || true
}

# listen [PORT]: sets port. Without one takes ports below those that the system gives to clients and to listeners on port 0, until one is free.
listen() {
    local tries=20
    while :; do
        port=${1:-$((20000 + RANDOM % 12000))}
        printf 'port = %s\n' "$port" >>"$cluster/data/postgresql.conf"
        : >"$cluster/log"
        # pg_ctl hands names to a shell: it gets none that the caller chose.
        if detached "${as[@]}" "$bin/pg_ctl" --pgdata=. --log=../log --wait --timeout=60 --silent start; then return 0; fi
        if ! grep -q 'Address already in use' "$cluster/log"; then
            die "the server does not start: $({ grep -E 'FATAL|PANIC' "$cluster/log" || cat "$cluster/log"; } | tail -n 1)"
        fi
        [[ -z ${1:-} ]] || die "port $1 of $address is taken"
        ((tries-- > 0)) || die "no free port was found"
    done
}

# prepare DIR [PORT]: sets dir and cluster, and where it will listen: address, addresses, network.
prepare() {
    local since owner=${EARSHOT_POSTGRES_OWNER:-}
    [[ -z ${2:-} || $2 =~ ^[1-9][0-9]{0,4}$ && $2 -le 65535 ]] || die "$2 is no port"
    address=127.0.0.1 addresses=127.0.0.1 network=${EARSHOT_POSTGRES_LISTEN:-}
    if [[ -n $network ]]; then
        [[ $network =~ ^([0-9.]+)/[0-9]+$ ]] || die "EARSHOT_POSTGRES_LISTEN: $network is no IPv4 ADDRESS/BITS"
        address=${BASH_REMATCH[1]} addresses+=,$address
    fi
    [[ -z $owner ]] || since=$(born "$owner") || die "EARSHOT_POSTGRES_OWNER: there is no process $owner"
    need_programs
    [[ ! -e $1/cluster && ! -L $1/cluster ]] || die "$1/cluster exists; postgres.sh stop $1 removes a server's"
    [[ -d $1 && $1 != "$folder" ]] || made=1
    dir=$(realpath -m "$1")
    mkdir -p "$dir" 2>/dev/null || die "$1 cannot be made"
    make_cluster "$dir" "$made"
    # Before all else, so that a kill -9 while it starts leaves nothing either.
    [[ -z $owner ]] || detached setsid --fork "$self" keep "$dir" "$cluster" "$owner" "$since"
}

# start DIR [PORT]: sets dir and url.
start() {
    local answer
    prepare "$@"
    initialize
    listen "${2:-}"
    answer=$(select_one 2>&1) || true
    [[ $answer == 1 ]] || die "the role earshot cannot connect: ${answer//$'\n'/ }"
    url=postgresql://earshot:$password@$address:$port/earshot
}

# as_superuser CLUSTER: runs what stands in the input, over the socket.
as_superuser() {
    local port
    port=$(sed -n 4p "$1/data/postmaster.pid" 2>/dev/null) || true
    [[ -n $port ]] || die "the server in $1 does not run"
    as_server "$bin/psql" -X -q -w -At -v ON_ERROR_STOP=1 -h "$1" -p "$port" -U postgres -d postgres
}

# standby DIR OF [PORT]: sets dir, address and port.
standby() {
    local of from secret name ends=$((SECONDS + 60))
    find_cluster "$2" || die "there is no server of postgres.sh in $2"
    of=$cluster
    prepare "$1" "${3:-}"
    # The last of its addresses: where it has another one, the standby may be elsewhere.
    from=$(as_superuser "$of" <<<"SELECT 'host=' || regexp_replace(current_setting('listen_addresses'), '.*,', '') || ' port=' || current_setting('port')")
    secret=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
    as_superuser "$of" <<END || die "the server in $2 takes no standby"
SELECT 'CREATE ROLE replicator' WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'replicator') \gexec
ALTER ROLE replicator LOGIN REPLICATION PASSWORD '$secret';
END
    # Also the name of its slot.
    name=${cluster##*.}
    name=standby_${name,,}
    detached "${as[@]}" "$bin/pg_basebackup" --pgdata=. --dbname="$from user=replicator password=$secret application_name=$name" --no-password \
        --checkpoint=fast --wal-method=stream --create-slot --slot="$name" --write-recovery-conf ||
        die "pg_basebackup failed: $(tail -n 1 "$cluster/log")"
    # It is back soon after its primary: until then no commit there is answered.
    cat >>"$cluster/data/postgresql.conf" <<END
listen_addresses = '$addresses'
cluster_name = '${cluster##*/}'
wal_retrieve_retry_interval = '200ms'
END
    listen "${3:-}"
    until [[ $(as_superuser "$of" <<<"SELECT state FROM pg_stat_replication WHERE application_name = '$name'") == streaming ]]; do
        ((SECONDS < ends)) || die "the standby does not stream from the server in $2"
        sleep 0.1
    done
    as_superuser "$of" <<END
ALTER SYSTEM SET synchronous_standby_names = '$name';
SELECT pg_reload_conf() \g /dev/null
END
    until [[ $(as_superuser "$of" <<<"SELECT sync_state FROM pg_stat_replication WHERE application_name = '$name'") == sync ]]; do
        ((SECONDS < ends)) || die "the standby of the server in $2 does not become synchronous"
        sleep 0.1
    done
}

promote() {
    need_programs
    become "$(stat -c %u "$cluster")" "$(stat -c %g "$cluster")"
    as+=(env --chdir="$cluster/data")
    detached "${as[@]}" "$bin/pg_ctl" --pgdata=. --wait --timeout=60 --silent promote || die "the standby is not promoted: $(tail -n 1 "$cluster/log")"
}

kill_all() {
    become "$(stat -c %u "$cluster")" "$(stat -c %g "$cluster")"
    mapfile -t running < <(processes)
    ((${#running[@]})) || return 0
    as_server kill -s KILL "${running[@]}" 2>/dev/null || true
    # A dead one that nobody has waited for yet would count as a server that runs.
    local ends=$((SECONDS + 30))
    for id in "${running[@]}"; do
        while [[ -d /proc/$id ]] && ((SECONDS < ends)); do sleep 0.05; done
    done
}

again() {
    need_programs
    become "$(stat -c %u "$cluster")" "$(stat -c %g "$cluster")"
    as+=(env --chdir="$cluster/data")
    detached "${as[@]}" "$bin/pg_ctl" --pgdata=. --log=../log --wait --timeout=60 --silent start ||
        die "the server does not start: $({ grep -E 'FATAL|PANIC' "$cluster/log" || cat "$cluster/log"; } | tail -n 1)"
}

select_one() (
    cd /
    unset "${!PG@}"
    export PGPASSWORD=$password PGCONNECT_TIMEOUT=20
    "$bin/psql" -X -w -h "$address" -p "$port" -U earshot -d earshot -Atc "SELECT 1"
)

# Undoes a start, also one that was interrupted.
undo() {
    local code=$?
    trap '' INT TERM HUP
    [[ -z $dir ]] || ! find_cluster "$dir" || (remove "$dir") || code=1
    [[ -z $folder ]] || rm -rf "$folder"
    # When it ended before there was a cluster to say so.
    [[ -z $made || ! -d $dir ]] || rmdir "$dir" 2>/dev/null || true
    exit "$code"
}

undo_at_end() {
    dir='' folder='' made=''
    trap undo EXIT
    trap 'exit 129' HUP
    trap 'exit 130' INT
    trap 'exit 143' TERM
}

run() {
    local code=0 signalled=1
    undo_at_end
    folder=$(mktemp -d)
    EARSHOT_POSTGRES_OWNER=$$ start "$folder"
    # In the background, because bash handles signals only between commands of its foreground; there SIGINT would be ignored.
    EARSHOT_TEST_POSTGRES=$url env --default-signal=INT,QUIT -- "$@" <&0 &
    child=$!
    trap 'pass HUP' HUP
    trap 'pass INT' INT
    trap 'pass TERM' TERM
    # A signal ends wait, but not the child.
    while [[ -n $signalled ]]; do
        signalled=
        code=0
        wait "$child" || code=$?
    done
    exit "$code"
}

# pass SIGNAL: on to the child, but for what the terminal sends to both.
pass() {
    local line fields
    signalled=1
    read -r line <"/proc/$$/stat"
    read -ra fields <<<"${line##*) }"
    # Our process group is the one in the terminal's foreground.
    [[ $1 == INT && ${fields[2]} == "${fields[5]}" ]] || kill -s "$1" "$child" 2>/dev/null || true
}

# keep DIR CLUSTER OWNER SINCE: a process of its own, which removes the server when its owner has ended and left it behind.
keep() {
    cluster=$2
    cd /
    while [[ -d $cluster && $(born "$3") == "$4" ]]; do sleep 0.5; done
    [[ ! -d $cluster ]] || remove "$1"
}

usage() {
    printf 'usage: postgres.sh start DIR [PORT] | stop DIR | kill DIR | again DIR | standby DIR OF [PORT] | promote DIR | run COMMAND…\n' >&2
    exit 2
}

verb=${1:-}
(($# == 0)) || shift
case $verb:$# in
start:[12])
    undo_at_end
    start "$@"
    trap - EXIT
    printf '%s\n' "$url"
    ;;
standby:[23])
    undo_at_end
    standby "$@"
    trap - EXIT
    printf '%s:%s\n' "$address" "$port"
    ;;
stop:1)
    find_cluster "$1" || die "there is no server of postgres.sh in $1"
    remove "$(realpath "$1")"
    ;;
kill:1 | again:1 | promote:1)
    find_cluster "$1" || die "there is no server of postgres.sh in $1"
    case $verb in
    kill) kill_all ;;
    again) again ;;
    promote) promote ;;
    esac
    ;;
run:[1-9]*) run "$@" ;;
keep:4) keep "$@" ;;
*) usage ;;
esac
