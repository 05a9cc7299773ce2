#!/usr/bin/env bash
# install-tree.sh BINARY ROOT PREFIX: puts the program, its man pages, completions and documents below ROOT, as they lie in a system:
# PREFIX/bin, PREFIX/share. Prints nothing.
set -euo pipefail
binary=$(realpath "${1:?usage: install-tree.sh BINARY ROOT PREFIX}")
root=${2?}
prefix=${3?}
cd "$(dirname "$0")/.."
to=$root$prefix
# Debian's zsh looks in vendor-completions for packages' files, in site-functions for the machine's own.
zsh=$to/share/zsh/site-functions
[[ $prefix != /usr ]] || zsh=$to/share/zsh/vendor-completions

install -D -m 755 "$binary" "$to/bin/earshot"

date=$(date -u -d "@${SOURCE_DATE_EPOCH:-$(date +%s)}" +%Y-%m-%d)
pages=$(mktemp -d)
trap 'rm -rf "$pages"' EXIT
python3 scripts/manpages.py "$binary" "$pages" "$date"
gzip -n -9 "$pages"/*.1
install -d "$to/share/man/man1"
install -m 644 "$pages"/*.1.gz "$to/share/man/man1/"

completion() { # SHELL FILE
    # Shells read these files, nobody runs them.
    "$binary" --generate-completion-script "$1" | sed '1{/^#!/d}' >"$pages/completion"
    install -D -m 644 "$pages/completion" "$2"
}
completion bash "$to/share/bash-completion/completions/earshot"
completion zsh "$zsh/_earshot"
completion fish "$to/share/fish/vendor_completions.d/earshot.fish"

# As in the clone, so that the documents' links lead somewhere.
doc=$to/share/doc/earshot
install -d "$doc"
for file in README.md CHANGELOG.md SECURITY.md LICENSE; do install -m 644 "$file" "$doc/"; done
while IFS= read -r file; do
    install -D -m 644 "$file" "$doc/$file"
done < <(find docs deploy -type f -not -path 'deploy/debian/*' -not -name '*.pyc' -not -name metrics-token)
