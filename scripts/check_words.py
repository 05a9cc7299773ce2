#!/usr/bin/env python3
"""check_words.py: no name in Sources uses a word that the glossary forbids.

docs/architecture.md has a table after its glossary of the words that are not used, where each is not, and what to say instead: the one source of this
check. A name is split at its capitals: `takesSplit` has the words takes and split. A word of the table that is written with a capital, as `carryOut`, is
that sequence of words. What a name may have all the same stands behind "but".

This reads the text of Sources, not types: every name after func, var, let, case, struct, class, enum, protocol, actor, typealias and associatedtype, and
the labels and names of parameters on the line of their func or init.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
GLOSSARY = ROOT / "docs" / "architecture.md"
HEADING = "### Words that are not used in names"
TYPES = ("struct", "class", "enum", "protocol", "actor", "typealias", "associatedtype")
# What the table's second column may say, and the definitions that it means.
WHERE = {
    "any name": ("func", "var", "let", "case", *TYPES, "parameter"),
    "functions and cases": ("func", "case"),
    "first word of functions and cases": ("func", "case"),
}
DEFINED = re.compile(rf"(?<![\w.])({'|'.join(('func', 'var', 'let', 'case', *TYPES))})\s+(.*)")
# The parameters of a function, and each one's label and name.
PARAMETERS = re.compile(r"(?<![\w.])(?:func\s+\S+?|init[?]?)(?:<[^()]*>)?\((.*)")
PARAMETER = re.compile(r"(?:^|[,(])\s*(\w+)(?:\s+(\w+))?\s*:")
TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')


class Word:
    def __init__(self, forms, where, instead):
        if where not in WHERE:
            sys.exit(f"check_words: {GLOSSARY.name} forbids {forms[0]} in {where!r}; known: {', '.join(WHERE)}")
        self.forms = [split(form) for form in forms]
        self.kinds = WHERE[where]
        self.is_first = where.startswith("first")
        allowed = re.search(r"; but (.*)", instead)
        self.allowed = [split(name) for name in re.findall(r"`(\w+)`", allowed[1])] if allowed else []
        self.instead = re.sub(r"; but .*", "", instead)

    def found(self, kind, name):
        """The form of the word that this name has, or None."""
        words = split(name)
        if kind not in self.kinds or any(at(words, known) is not None for known in self.allowed):
            return None
        for form in self.forms:
            position = at(words, form)
            if position is not None and (position == 0 or not self.is_first):
                return "".join(form)
        return None


def split(name):
    """The words of a name, in small letters: nowMs, HLSPlaces and RTMPConnection have now ms, hls places, rtmp connection."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)]


def at(words, form):
    return next((start for start in range(len(words) - len(form) + 1) if words[start : start + len(form)] == form), None)


def table():
    text = GLOSSARY.read_text(encoding="utf-8")
    if HEADING not in text:
        sys.exit(f"check_words: {GLOSSARY.name} has no heading {HEADING!r}")
    lines = text[text.index(HEADING) :].splitlines()[1:]
    rows = []
    for line in lines:
        if line.startswith("#"):
            break
        if line.startswith("| `"):
            forms, where, instead = (cell.strip() for cell in line.strip("|").split("|"))
            rows.append(Word(re.findall(r"`(\w+)`", forms), where, instead))
    if not rows:
        sys.exit(f"check_words: {GLOSSARY.name} has no words below {HEADING!r}")
    return rows


def names(line):
    """The names that a line defines, each with its kind."""
    bare = re.sub(r"//.*", "", TEXT.sub('""', line))
    if listed := PARAMETERS.search(bare):
        yield from (("parameter", name) for found in PARAMETER.findall(listed[1]) for name in found if name)
    while match := DEFINED.search(bare):
        kind, rest = match.groups()
        bare = rest
        if kind in ("var", "let") and rest.startswith("("):
            yield from ((kind, name) for name in re.findall(r"\w+", rest.partition(")")[0]))
        elif kind == "case" and (rest.startswith(".") or rest.startswith("let ")):
            continue
        elif kind == "case":
            listed = re.sub(r"\([^()]*(?:\([^()]*\)[^()]*)*\)?", "", rest)
            # A pattern of a switch ends in a colon; a definition does not.
            if ":" not in re.sub(r'"[^"]*"', "", listed):
                yield from ((kind, found[1]) for part in listed.split(",") if (found := re.match(r"\s*`?(\w+)", part)))
        elif name := re.match(r"`?(\w+)", rest):
            yield kind, name[1]


def main():
    rows = table()
    wrong = checked = 0
    for path in sorted((ROOT / "Sources").rglob("*.swift")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            for kind, name in names(line):
                checked += 1
                for word in rows:
                    if form := word.found(kind, name):
                        wrong += 1
                        print(f"check_words: {path.relative_to(ROOT)}:{number}: {kind} {name}: {form} is not used here; say {word.instead}")
    print(f"check_words: {checked} names: {'all right' if not wrong else f'{wrong} things are wrong'}")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
