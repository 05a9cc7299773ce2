#!/usr/bin/env python3
"""player_page.py [--write]: whether docs/player.html has the console's player, live-player.js with whep.js; --write puts them in.

The page is for people who copy it, so it is one file that needs no other. Only what is between its marks comes from the console.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "player.html"
ASSETS = ROOT / "Sources" / "Console" / "Assets"
# What the player imports comes before it.
PLAYER = ("whep.js", "live-player.js")
MARKED = re.compile(r"(// Written by scripts/player_page\.py:\n).*?(// Until here\.\n)", re.S)


def script(path):
    """A module's text as a part of a page: without its first comment, imports and exports."""
    text = path.read_text(encoding="utf-8")
    return re.sub(r"^export (?=class|function)", "", text[text.index("/**"):], flags=re.M)


def main():
    page = PAGE.read_text(encoding="utf-8")
    if not MARKED.search(page):
        sys.exit("player_page: docs/player.html has lost its marks, `// Written by scripts/player_page.py:` and `// Until here.`")
    player = "\n".join(script(ASSETS / name) for name in PLAYER)
    new = MARKED.sub(lambda marks: f"{marks.group(1)}{player}{marks.group(2)}", page)
    if "--write" in sys.argv[1:]:
        PAGE.write_text(new, encoding="utf-8")
    elif new != page:
        sys.exit("player_page: docs/player.html has another player than the console: run scripts/player_page.py --write")


if __name__ == "__main__":
    main()
