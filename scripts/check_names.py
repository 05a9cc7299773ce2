#!/usr/bin/env python3
"""check_names.py: the server compares names by their bytes.

Swift's == on String, and so a Dictionary or Set of String, takes other spellings of the same characters for equal: "é" as U+00E9, and as "e" with U+0301. The
store, signatures and URLs take them for two names. So names are compared as `one.exact == other.exact`, kept in a `NameTable` or a `Set<ExactText>`, and a
type whose identity is a name holds it as `@ExactText` (Sources/Support/ExactText.swift).

This reads the text of Sources, not types. It complains about
- `==`, `!=` and `.contains(…)` between two values of which one is called like a name (NAMES), unless it is known to be no String: the file declares
  it with another type, or the other side is a literal, a case or a constant of a type;
- a variable, parameter or Mutex that is a Dictionary or Set of String and is called like a table of names (TABLES), or whose doc comment says
  that it is by stream, path, room, user or app.
A line that is right all the same ends in `// compares WHAT`.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# What names and identities are called here. `name`, `id` and `key` alone are mostly fields of forms and ids of ours, so they count only as a part of these.
NAMES = {"app", "path", "room", "stream", "user", "userID", "identity", "sub", "owner", "publisher", "participant"}
OWNERS = {"address", "path", "stream", "slot", "request"}
TABLES = {
    "apps", "byApp", "byPath", "entries", "kicks", "live", "owners", "paths", "people", "publishers", "rooms", "rows", "streams", "users", "sinks", "sources",
}
# The program's own commands show what servers answer, and decide nothing.
APART = ("Sources/CommandSupport/", "Sources/Commands/", "Sources/Doctor/", "Sources/earshot/")

OPERAND = r"(?:[\w$]+(?:\([^()]*\))?[?!]?\.)*[\w$]+[?!]?"
COMPARED = re.compile(rf"({OPERAND}) (?:==|!=) (\S+)")
CONTAINED = re.compile(rf"({OPERAND})\.contains\(({OPERAND})\)")
TABLE = re.compile(r"\b(?:let|var|_|inout)?\s*(\w+)(?:: (?:inout )?| = Mutex<)(?:\[String: |Set<String>)")
BY = re.compile(r"///.*\b[Bb]y (?:stream|path|room|user|app)\b")
DECLARED = r"\b{0}(?:: (?:inout |borrowing |consuming |any |some )*|(?: = (?:try )?)(?=[A-Z]\w*\())([\w.]+)"


def code(line):
    """The line without texts and comments."""
    return re.sub(r"//.*", "", re.sub(r'"(?:[^"\\]|\\.)*"', '""', line))


def words(operand):
    return [re.sub(r"[(\[].*|[?!]$", "", word) for word in re.sub(r"\[.*", "", operand.rstrip(",{)")).split(".")]


def is_name(operand):
    parts = words(operand)
    last = parts[-1]
    return last in NAMES or (last == "name" and len(parts) > 1 and parts[-2] in OWNERS) or (last == "rawValue" and len(parts) > 1 and parts[-2] in NAMES | {"id"})


def is_no_string(operand, before):
    """Whether the operand is a literal, a case, a constant, or was declared last as something else than a String. `before`: the file up to here."""
    parts = words(operand)
    if re.match(r'["\d.\[]|nil\b|true\b|false\b|Self\b|[A-Z]', operand):
        return True
    if len(parts) > 1 and parts[0] != "self":
        return False
    types = re.findall(DECLARED.format(re.escape(parts[-1])), before)
    return bool(types) and types[-1] != "String"


def problems(path):
    text = path.read_text(encoding="utf-8")
    former = before = ""
    for number, line in enumerate(text.splitlines(), 1):
        bare = code(line)
        before += bare + "\n"
        if "// compares " not in line:
            for one, other in COMPARED.findall(bare) + CONTAINED.findall(bare):
                if "exact" in words(one) + words(other) or not (is_name(one) or is_name(other)):
                    continue
                if not is_no_string(one, before) and not is_no_string(other, before):
                    yield number, f"compares {one} with {other.rstrip(',{)')} as Strings; expected .exact of both"
            for name in TABLE.findall(bare):
                if name in TABLES or BY.search(former):
                    yield number, f"{name} is a table by String; expected a NameTable, or a Set<ExactText>"
        former = line


def main():
    wrong = checked = 0
    for path in sorted((ROOT / "Sources").rglob("*.swift")):
        where = path.relative_to(ROOT).as_posix()
        if where.startswith(APART):
            continue
        checked += 1
        for number, problem in problems(path):
            wrong += 1
            print(f"check_names: {where}:{number}: {problem}")
    print(f"check_names: {checked} files: {'all right' if not wrong else f'{wrong} things are wrong'}")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
