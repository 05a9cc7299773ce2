#!/usr/bin/env python3
"""target_graph.py [--write]: whether the picture and the table of targets in docs/architecture.md are what Package.swift says; --write draws them.

The picture has each target with those that it imports and no other of its imports does (the graph's transitive reduction), without what most services import.
The table's last column is all of them. People write the words: in the table's second column, and within the picture's boxes; a box for a new target
begins with the former.
"""

import pathlib
import re
import sys

import check_imports

PAGE = check_imports.ROOT / "docs" / "architecture.md"
# Most services import these: their edges would hide the others.
EVERYWHERE = {"LibC", "Support", "ServerConfiguration", "Rooms", "RoomRegistry", "Store"}
PICTURE = re.compile(r"```mermaid\nflowchart TD\n.*?```\n", re.S)
BOX = re.compile(r'^    (\w+)\["\w+: ([^"]*)"\]', re.M)
ROW = re.compile(r"^\| `(\w+)` \| (.*?) \|([^|]*)\|$", re.M)


def own_targets():
    """Targets that make up the server, and their own imports, system libraries apart."""
    described = {target["name"]: target for target in check_imports.manifest()}
    shown = {
        name for name, target in described.items()
        if target["type"] in ("regular", "executable") and not (target.get("path") or "").startswith("Tests/") and check_imports.sources(target)
    }
    # Programs that measure stand beside the server.
    return {name: check_imports.declared(described[name]) & shown for name in shown if not name.startswith("earshot-")}


def reached(graph, start):
    """All that the target imports, and what these import."""
    found, left = set(), list(graph[start])
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += graph[name]
    return found


def depth(graph, name):
    return 1 + max((depth(graph, below) for below in graph[name]), default=0)


def picture(graph, words):
    kept = {name: below - EVERYWHERE for name, below in graph.items() if name not in EVERYWHERE}
    lines = []
    for name in sorted(kept, key=lambda name: (-depth(graph, name), name)):
        needless = set().union(*(reached(kept, below) for below in kept[name])) if kept[name] else set()
        direct = sorted(kept[name] - needless)
        arrow = f" --> {' & '.join(direct)}" if direct else ""
        lines.append(f'    {name}["{name}: {words[name]}"]{arrow}')
    return "```mermaid\nflowchart TD\n" + "\n".join(lines) + "\n```\n"


def drawn(text, graph):
    words = {row.group(1): re.split("[;:,(]", row.group(2))[0].strip() for row in ROW.finditer(text) if row.group(1) in graph}
    missing = sorted(set(graph) - set(words))
    if missing:
        sys.exit(f"target_graph: docs/architecture.md has no row for {', '.join(missing)}: add one (| `Name` | concern | |) and run target_graph.py --write")

    words |= {box.group(1): box.group(2) for box in BOX.finditer(text) if box.group(1) in graph}

    def row(match):
        if match.group(1) not in graph:
            return match.group(0)
        return f"| `{match.group(1)}` | {match.group(2)} | {', '.join(sorted(graph[match.group(1)])) or 'none'} |"

    return ROW.sub(row, PICTURE.sub(lambda _: picture(graph, words), text))


def main():
    text = PAGE.read_text(encoding="utf-8")
    if not PICTURE.search(text):
        sys.exit("target_graph: docs/architecture.md has no picture (a mermaid block that begins with flowchart TD)")
    new = drawn(text, own_targets())
    if "--write" in sys.argv[1:]:
        PAGE.write_text(new, encoding="utf-8")
    elif new != text:
        sys.exit("target_graph: the targets in docs/architecture.md are not those of Package.swift: run scripts/target_graph.py --write")


if __name__ == "__main__":
    main()
