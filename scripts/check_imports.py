#!/usr/bin/env python3
"""check_imports.py [--figures]: the sources of each target import what Package.swift says, and nothing else.

An import that the manifest does not name works for as long as another target happens to bring it; a dependency that nothing imports says
that a target may touch what it does not. Reads `swift package dump-package`, which resolves and builds nothing.
Files of a target that name each other's types in a circle may be few only. --figures prints the graph in numbers: targets, edges, lines, circles.
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Modules of the toolchain and the system: in no manifest. CoreFoundation is where the compiler finds `stat` once it has read Foundation.
SYSTEM = {
    "Android", "Bionic", "CRT", "CoreFoundation", "Darwin", "Dispatch", "Foundation", "FoundationEssentials", "FoundationNetworking", "Glibc", "Musl", "ObjectiveC",
    "PackageDescription", "Swift", "Synchronization", "Testing", "XCTest",
}
# Modules that only these folders and files of Sources may know.
FENCED = {"GRDB": ("Sources/Store/SQLite/", "Sources/Statistics/StatisticsFile.swift")}
IMPORT = re.compile(
    r"^(?:@\w+(?:\([^)]*\))?\s+)*(?:public |package |internal |fileprivate |private )?import\s+"
    r"(?:struct |class |enum |protocol |func |var |let |typealias )?(\w+)", re.M)


def manifest():
    with tempfile.TemporaryDirectory() as scratch:
        command = ["swift", "package", "--scratch-path", scratch, "dump-package"]
        printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if printed.returncode:
        sys.exit(f"check_imports: `swift package dump-package` failed: {printed.stderr.strip()}")
    return json.loads(printed.stdout)["targets"]


def folder(target):
    base = "Tests" if target["type"] == "test" else "Sources"
    return ROOT / (target.get("path") or f"{base}/{target['name']}")


def sources(target):
    return sorted(folder(target).rglob("*.swift"))


def imports(path):
    """Modules that the file imports."""
    # At a line's beginning: an import that is part of a text is indented.
    return set(IMPORT.findall(path.read_text(encoding="utf-8")))


def declared(target):
    """Modules that the target may import. A product is named like its module, in all packages that are used here."""
    names = set()
    for dependency in target["dependencies"]:
        for kind in ("byName", "target", "product"):
            if kind in dependency:
                names.add(dependency[kind][0])
    return names


def figures(targets):
    built = [target for target in targets if target["type"] in ("regular", "executable") and sources(target)]
    own = {target["name"] for target in targets}
    edges = {(target["name"], name) for target in built for name in declared(target) & own}
    print(f"targets with Swift sources, tests apart: {len(built)}")
    print(f"edges among the project's targets: {len(edges)}")
    print(f"pairs that depend on each other: {sum((b, a) in edges for a, b in edges) // 2}")
    for target in sorted(built, key=lambda target: -lines(target))[:5]:
        print(f"  {lines(target):6} lines, {len(sources(target)):3} files  {target['name']}")
    for target in built:
        for circle in circles(target):
            if len(circle) > 3:
                print(f"  circle of {len(circle)} files in {target['name']}: {', '.join(path.stem for path in circle)}")


DECLARATION = re.compile(
    r"^(?:(?:package|public|final|indirect|private|fileprivate|@\w+(?:\([^)]*\))?) )*(?:struct|class|enum|protocol|actor|typealias) (\w+)", re.M)
# A multi-line text, a text on one line, a comment: what may hold any word.
APART = re.compile(r'"""[\s\S]*?"""|"(?:\\.|[^"\\\n])*"|//.*')
# Files in one circle of a target, at most. Relay's are the stream, its loop and what stands on it, which are one thing in several files.
LONGEST_CIRCLE = {"Relay": 9}
LONGEST_CIRCLE_ELSEWHERE = 5


def circles(target):
    """Circles of the target's files, the largest first: each file of one leads to every other by names of types.

    A file leads to another if it names, outside of comments and texts, a type that the other declares at its outermost level. Members of
    extensions and types within types do not count.
    """
    texts = {path: APART.sub('""', path.read_text(encoding="utf-8")) for path in sources(target)}
    owners = {name: path for path, text in texts.items() for name in DECLARATION.findall(text)}
    ways = {path: {owners[word] for word in set(re.findall(r"\b[A-Z]\w+\b", text)) & owners.keys()} - {path} for path, text in texts.items()}
    reached = {path: reach(ways, path) for path in ways}
    found = {frozenset(other for other in reached[path] if path in reached[other]) for path in ways if path in reached[path]}
    return sorted((sorted(each) for each in found), key=len, reverse=True)


def reach(ways, start):
    """The files to which `start` leads, itself only by way of others."""
    seen, waiting = set(), list(ways[start])
    while waiting:
        path = waiting.pop()
        if path not in seen:
            seen.add(path)
            waiting += ways[path]
    return seen


def lines(target):
    return sum(path.read_text(encoding="utf-8").count("\n") for path in sources(target))


def main():
    targets = manifest()
    if sys.argv[1:] == ["--figures"]:
        return figures(targets)
    if sys.argv[1:]:
        sys.exit(f"check_imports: unexpected {sys.argv[1]}; usage: check_imports.py [--figures]")
    wrong = []
    checked = 0
    for target in targets:
        allowed, used = declared(target), set()
        for path in sources(target):
            checked += 1
            found = imports(path)
            used |= found
            for name in sorted(found - allowed - SYSTEM - {target["name"]}):
                where = path.relative_to(ROOT)
                wrong.append(f"{where}: imports {name}; expected it among the dependencies of {target['name']} in Package.swift")
            where = path.relative_to(ROOT).as_posix()
            for name, places in FENCED.items():
                if name in found and where.startswith("Sources/") and not where.startswith(places):
                    wrong.append(f"{where}: imports {name}; expected that in {' and '.join(places)} only")
        for name in sorted(allowed - used) if sources(target) else ():
            wrong.append(f"Package.swift: {target['name']} depends on {name}; expected a source of it to import that")
        if (ROOT / "Sources" / target["name"]).is_dir():
            most = LONGEST_CIRCLE.get(target["name"], LONGEST_CIRCLE_ELSEWHERE)
            for circle in circles(target):
                if len(circle) > most:
                    names = ", ".join(path.stem for path in circle)
                    wrong.append(f"Sources/{target['name']}: {len(circle)} files name each other's types in a circle, {names}; expected at most {most}")
    for line in wrong:
        print(f"check_imports: {line}")
    print(f"check_imports: {checked} files of {len(targets)} targets: {'all right' if not wrong else f'{len(wrong)} things are wrong'}")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
