#!/usr/bin/env bash
# packages.sh build|test|players|demo|bench|cluster-bench|budget|sanitize|package|package-test|postgres: sees to it that what the task needs is installed. Silent when nothing is missing.
# Installs Debian packages with apt-get, as root or through sudo; where it cannot, says in one line what to do and exits 1.
set -euo pipefail

say() { printf 'earshot: %s\n' "$*" >&2; }

# Each entry is package:command (or :/file), the second for systems without dpkg.
# g++ stands for the C library and C++ headers that Swift links against; zlib is swift-nio-extras' and the API's, SQLite is GRDB's, libpq is for
# rooms on PostgreSQL.
# Python shows a build's progress, and runs the steps of tests.
build=(git:git make:make python3:python3 g++:g++ pkg-config:pkg-config zlib1g-dev:/usr/include/zlib.h libsqlite3-dev:/usr/include/sqlite3.h
    libpq-dev:/usr/include/postgresql/libpq-fe.h
    libqrencode-dev:/usr/include/qrencode.h librtmp-dev:/usr/include/librtmp/rtmp.h libssl-dev:/usr/include/openssl/ssl.h
    libavformat-dev: libavcodec-dev: libavutil-dev: libswresample-dev: libswscale-dev: ca-certificates:/etc/ssl/certs)
demo=("${build[@]}" ffmpeg:ffmpeg curl:curl)
# Programs that play and push in the players suite. Xvfb is their screen; setpriv runs VLC as another user than root.
players=("${demo[@]}" python3:python3 python3-pip:pip3 vlc-bin:vlc vlc-plugin-base: vlc-plugin-video-output: mpv:mpv obs-studio:obs xvfb:Xvfb libx11-6:
    util-linux:setpriv chromium: rtmpdump:rtmpdump nginx-light:nginx libnginx-mod-rtmp: gstreamer1.0-tools:gst-launch-1.0
    gstreamer1.0-plugins-base: gstreamer1.0-plugins-good: gstreamer1.0-plugins-bad: gstreamer1.0-plugins-ugly: gstreamer1.0-libav:
    gstreamer1.0-nice: python3-gst-1.0: gir1.2-gst-plugins-bad-1.0: gir1.2-nice-0.1: firefox-esr:)
# What postgres.sh starts, and how.
postgres=(postgresql:initdb util-linux:setpriv)
# valgrind counts for the budgets; it reads the C library's debug symbols.
test=("${players[@]}" "${postgres[@]}" shellcheck:shellcheck apache2-utils:ab libfaketime: valgrind:valgrind libc6-dbg: openssl:openssl python3-venv: haproxy:haproxy zbar-tools:zbarimg iproute2:ip espeak-ng:espeak-ng librsvg2-bin:rsvg-convert
    prometheus:promtool)
budget=("${build[@]}" valgrind:valgrind libc6-dbg: ffmpeg:ffmpeg)
bench=("${demo[@]}" nginx-light:nginx libnginx-mod-rtmp: util-linux:taskset wrk:wrk)
cluster_bench=("${demo[@]}" "${postgres[@]}" python3:python3)
# dpkg-dev comes with debhelper; Python makes the man pages.
package=("${build[@]}" debhelper:dh python3:python3)
package_test=("${package[@]}" mmdebstrap:mmdebstrap ffmpeg:ffmpeg iproute2:ip util-linux:unshare binutils:objcopy curl:curl
    systemd-container:systemd-nspawn)
# The other ends of links in the tests.
sanitize=("${bench[@]}" openssl:openssl)

case "${1:-}" in
build) wanted=("${build[@]}") ;;
test) wanted=("${test[@]}") ;;
players) wanted=("${players[@]}") ;;
demo) wanted=("${demo[@]}") ;;
bench) wanted=("${bench[@]}") ;;
cluster-bench) wanted=("${cluster_bench[@]}") ;;
budget) wanted=("${budget[@]}") ;;
sanitize) wanted=("${sanitize[@]}") ;;
package) wanted=("${package[@]}") ;;
package-test) wanted=("${package_test[@]}") ;;
postgres) wanted=("${postgres[@]}") ;;
*)
    say "usage: packages.sh build|test|players|demo|bench|cluster-bench|budget|sanitize|package|package-test|postgres"
    exit 2
    ;;
esac

missing=()
if command -v dpkg-query >/dev/null; then
    # dpkg-query fails when one name is unknown; what it prints is what counts.
    installed=$'\n'$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "${wanted[@]%%:*}" 2>/dev/null || true)$'\n'
    for entry in "${wanted[@]}"; do
        [[ $installed == *$'\n'"installed ${entry%%:*}"$'\n'* ]] || missing+=("${entry%%:*}")
    done
else
    for entry in "${wanted[@]}"; do
        probe=${entry#*:}
        case $probe in
        "") ;;
        /*) [[ -e $probe ]] || missing+=("${entry%%:*}") ;;
        *) command -v "$probe" >/dev/null || missing+=("${entry%%:*}") ;;
        esac
    done
fi

# Debian's packages start their daemons (nginx, haproxy, apache) when they are installed; a policy-rc.d that answers 101 keeps them from it.
# One that somebody else made stays as it is. Ours names its process: it is removed when that ends, and one left by a kill -9 is replaced.
policy=/usr/sbin/policy-rc.d
own_policy() { [[ -f $policy ]] && sed -n 's/^# earshot packages.sh //p' "$policy"; }

forbid_daemons() {
    local owner
    [[ -d ${policy%/*} ]] || return 0
    while owner=$(own_policy) && [[ -n $owner && -d /proc/$owner ]]; do sleep 1; done
    if [[ -n $owner ]]; then
        "${as_root[@]}" rm -f "$policy"
    elif [[ -e $policy || -L $policy ]]; then
        return 0
    fi
    printf '#!/bin/sh\n# earshot packages.sh %s\nexit 101\n' $$ | "${as_root[@]}" tee "$policy" >/dev/null
    "${as_root[@]}" chmod 755 "$policy"
}

allow_daemons() { [[ $(own_policy) != "$$" ]] || "${as_root[@]}" rm -f "$policy"; }

# Debian's package of PostgreSQL makes a cluster when it is first installed, which tests do not need. A file beside the package's settings keeps it
# from that. It goes when this installation is over: whoever installs another version later gets a cluster as usual.
no_cluster=/etc/postgresql-common/createcluster.d/earshot.conf
forbid_cluster() {
    [[ " ${missing[*]} " == *" postgresql "* ]] || return 0
    "${as_root[@]}" mkdir -p "${no_cluster%/*}"
    printf '# earshot packages.sh %s\ncreate_main_cluster = false\n' $$ | "${as_root[@]}" tee "$no_cluster" >/dev/null
}

allow_cluster() {
    grep -qsx "# earshot packages.sh $$" "$no_cluster" || return 0
    "${as_root[@]}" rm -f "$no_cluster"
    "${as_root[@]}" rmdir --ignore-fail-on-non-empty "${no_cluster%/*}"
}

at_end() {
    trap - EXIT HUP INT TERM
    allow_cluster
    allow_daemons
}

install() {
    local log
    as_root=()
    if ! command -v apt-get >/dev/null; then
        say "missing: ${missing[*]} (Debian's names); install them with this system's package manager"
        return 1
    fi
    if [[ $(id -u) != 0 ]]; then
        # Without a terminal sudo could only hang at its password prompt.
        if command -v sudo >/dev/null && { [[ -t 0 ]] || sudo -n true 2>/dev/null; }; then
            as_root=(sudo)
        else
            say "missing: ${missing[*]}; as root: apt-get update && apt-get install -y ${missing[*]}"
            return 1
        fi
    fi
    say "installing ${missing[*]}"
    trap at_end EXIT
    trap 'exit 129' HUP
    trap 'exit 130' INT
    trap 'exit 143' TERM
    forbid_daemons
    forbid_cluster
    log=$(mktemp)
    local apt=(env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300)
    # The package lists are fetched only when these are absent or too old to serve.
    if ! "${as_root[@]}" "${apt[@]}" install --no-install-recommends "${missing[@]}" >"$log" 2>&1 </dev/null; then
        if ! { "${as_root[@]}" "${apt[@]}" update && "${as_root[@]}" "${apt[@]}" install --no-install-recommends "${missing[@]}"; } \
            >"$log" 2>&1 </dev/null; then
            tail -n 15 "$log" >&2
            rm -f "$log"
            say "could not install ${missing[*]}; as root: apt-get update && apt-get install -y ${missing[*]}"
            return 1
        fi
    fi
    rm -f "$log"
    at_end
}

if ((${#missing[@]})); then install; fi
[[ $1 != postgres ]] || exit 0

least=6.2
get="get it from https://www.swift.org/install/linux and put its usr/bin into PATH"
if ! command -v swift >/dev/null; then
    say "missing: swift $least or later; $get"
    exit 1
fi
version=$(swift --version 2>/dev/null | sed -n 's/.*Swift version \([0-9]*\.[0-9]*\).*/\1/p' | head -n 1)
if [[ -z $version ]] || ! printf '%s\n%s\n' "$least" "$version" | sort -V -C; then
    say "swift is ${version:-of no known version} ($(command -v swift)); $least or later is needed: $get"
    exit 1
fi
