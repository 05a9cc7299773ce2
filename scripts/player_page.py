#!/usr/bin/env python3
"""player_page.py [--write]: whether docs/player.html has the console's player, Sources/Console/Assets/live-player.js; --write puts it in.

The page is for people who copy it, so it is one file that needs no other. Only the class between its marks comes from the console.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "player.html"
PLAYER = ROOT / "Sources" / "Console" / "Assets" / "live-player.js"
MARKED = re.compile(r"(// Written by scripts/player_page\.py:\n).*?(// Until here\.\n)", re.S)


def main():
    page = PAGE.read_text(encoding="utf-8")
    if not MARKED.search(page):
        sys.exit("player_page: docs/player.html has lost its marks, `// Written by scripts/player_page.py:` and `// Until here.`")
    player = PLAYER.read_text(encoding="utf-8")
    player = player[player.index("/**"):].replace("export class", "class", 1)
    new = MARKED.sub(lambda marks: f"{marks.group(1)}{player}{marks.group(2)}", page)
    if "--write" in sys.argv[1:]:
        PAGE.write_text(new, encoding="utf-8")
    elif new != page:
        sys.exit("player_page: docs/player.html has another player than the console: run scripts/player_page.py --write")


if __name__ == "__main__":
    main()
