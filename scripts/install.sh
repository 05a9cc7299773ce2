#!/usr/bin/env bash
# install.sh install|uninstall: what `make install` and `make uninstall` do, below DESTDIR (nothing) and PREFIX (/usr/local).
# The program is what `make release` builds, or EARSHOT_BINARY. Settings and data outlive both.
set -euo pipefail
. "$(dirname "$0")/build-env.sh"
. scripts/dist.sh
prefix=${PREFIX:-/usr/local}
root=${DESTDIR:-}
unit=$root$prefix/lib/systemd/system/earshot.service
yaml=$root/etc/earshot/earshot.yaml
to=$root$prefix

install_all() {
    local binary
    if [[ -z ${EARSHOT_BINARY:-} && $(id -u) = 0 && -n ${SUDO_USER:-} ]]; then
        # Through sudo the build would begin anew in root's folders.
        say "building as $SUDO_USER"
        binary=$(sudo -H -u "$SUDO_USER" env PATH="$PATH" scripts/release.sh | tail -n 1)
    else
        binary=$(program)
    fi
    [[ -x $binary ]] || { say "there is no program to install; run make release, then make install EARSHOT_BINARY=PATH"; exit 1; }
    scripts/install-tree.sh "$binary" "$root" "$prefix"
    install -d "${unit%/*}" "${yaml%/*}"
    sed "s|/usr/bin/earshot|$prefix/bin/earshot|" deploy/earshot.service >"$unit"
    chmod 644 "$unit"
    if [[ -e $yaml ]]; then
        say "$yaml stays as it is"
    else
        scripts/installed-yaml.sh "$yaml"
    fi
    say "installed $("$to/bin/earshot" --version) in $to/bin"
    [[ -z $root ]] || return 0
    say "as a service, once: useradd --system --home-dir /var/lib/earshot --shell /usr/sbin/nologin earshot"
    say "then: chgrp earshot $yaml; chmod 640 $yaml; systemctl daemon-reload; systemctl enable --now earshot"
}

uninstall_all() {
    rm -f "$to/bin/earshot" "$to"/share/man/man1/earshot.1.gz "$to"/share/man/man1/earshot-*.1.gz \
        "$to/share/bash-completion/completions/earshot" "$to/share/zsh/site-functions/_earshot" "$to/share/zsh/vendor-completions/_earshot" \
        "$to/share/fish/vendor_completions.d/earshot.fish" "$unit"
    rm -rf "$to/share/doc/earshot"
    say "removed from $to; $yaml and /var/lib/earshot stay: delete them if nobody needs them"
}

case "${1:-}" in
install) install_all ;;
uninstall) uninstall_all ;;
*)
    say "usage: install.sh install|uninstall"
    exit 2
    ;;
esac
