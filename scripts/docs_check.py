"""Checks what the Markdown files of this repository name: docs_check.py [BINARY], from the repository's root.

Links and anchors, paths in backticks, make targets, earshot commands with their options, routes of the API; and that table cells are short enough to read.
One line for each mistake; exit code 1 then.
"""

import difflib
import os
import pathlib
import re
import shlex
import subprocess
import sys
import unicodedata
import urllib.parse

PATH_STARTS = ("Sources/", "Tests/", "docs/", "scripts/", "deploy/", "Benchmarks/")
MANIFEST = "Makefile"
ROUTES = "Sources/*Routes.swift"
# Words that a shell puts before a command, and the command after them.
SEPARATORS = {"|", "||", "&&", ";", "&"}
RUNNERS = {"sudo", "exec", "time"}
# Characters of a table's cell, but for pages that the program makes and a column that scripts/target_graph.py makes.
LONGEST_CELL = 200
PAGES_MADE = {"docs/configuration.md", "docs/http-api.md"}
COLUMN_MADE = "own targets it imports"


def tracked(*patterns):
    """The files that git tracks, those that were deleted but not yet committed left out."""
    listed = subprocess.run(["git", "ls-files", "-z", "--", *patterns], check=True, capture_output=True, text=True).stdout
    return [name for name in listed.split("\0") if name and os.path.exists(name)]


def slug(title):
    """The anchor of a heading, as GitHub makes it."""
    title = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", title)
    kept = [c for c in title.strip().lower() if c in " -_" or unicodedata.category(c)[0] in "LMN"]
    return "".join(kept).replace(" ", "-")


class Document:
    """A Markdown file: its lines, which of them are code, and its headings."""

    def __init__(self, path):
        self.path = path
        self.lines = pathlib.Path(path).read_text(encoding="utf-8").split("\n")
        # Number of the line (from 1), its text, the language of its block ("" without one), None outside of code.
        self.rows = []
        fence, language = None, None
        for number, line in enumerate(self.lines, 1):
            mark = re.match(r"\s*(`{3,}|~{3,})\s*(\w*)", line)
            if fence is None and mark:
                fence, language = mark.group(1), mark.group(2)
                continue
            if fence is not None and mark and line.strip().startswith(fence) and not line.strip().strip(fence[0]):
                fence, language = None, None
                continue
            self.rows.append((number, line, language))
        self.anchors = set()
        seen = {}
        for _, line, code in self.rows:
            heading = re.match(r"#{1,6}\s+(.+?)\s*#*$", line)
            if code is None and heading:
                name = slug(heading.group(1))
                count = seen.get(name, 0)
                seen[name] = count + 1
                self.anchors.add(f"{name}-{count}" if count else name)
            for given in re.findall(r'<a\s+(?:id|name)="([^"]+)"', line) if code is None else []:
                self.anchors.add(given)

    def prose(self):
        return [(number, line) for number, line, language in self.rows if language is None]

    def code(self, *languages):
        return [(number, line) for number, line, language in self.rows if language in languages]

    def commands(self):
        """Lines of sh blocks, joined where a backslash or an open quote says so."""
        joined, start, last = "", 0, 0
        for number, line in self.code("sh", "bash", "shell"):
            if joined and number != last + 1:
                # The block ended.
                yield start, joined
                joined = ""
            start, last = (start if joined else number), number
            joined = joined + line
            if joined.endswith("\\"):
                joined = joined[:-1] + " "
            elif words(joined) is None:
                joined += "\n"
            else:
                yield start, joined
                joined = ""
        if joined:
            yield start, joined


def words(line):
    """The words of a line of shell; None where a quote is left open."""
    try:
        reader = shlex.shlex(line, posix=True, punctuation_chars="|&;")
        reader.whitespace_split = True
        reader.commenters = "#"
        return list(reader)
    except ValueError:
        return None


def simple_commands(line):
    """The commands in a line of shell, those in $(…) too, without what only runs or prepares them."""
    for inner in re.findall(r"\$\(([^()]*)\)", line):
        yield from simple_commands(inner)
    command = []
    for word in (words(re.sub(r"\$\([^()]*\)", "VALUE", line)) or []) + [";"]:
        if word in SEPARATORS:
            if command:
                yield command
            command = []
        elif command or not (word in RUNNERS or re.match(r"\w+=", word)):
            command.append(word)


def near(word, known, most=4):
    """The known words that are most like this one, for a message."""
    known = sorted(known)
    chosen = difflib.get_close_matches(word, known, n=most, cutoff=0.5) or known[:most]
    return ("one of " if len(chosen) > 1 else "") + ", ".join(chosen) + (" …" if len(chosen) < len(known) else "")


class Checker:
    def __init__(self, binary):
        self.binary = binary
        self.documents = {}
        self.counts = dict.fromkeys(("links", "paths", "make targets", "earshot commands", "options", "routes", "table cells"), 0)
        self.problems = []
        self.helps = {}
        text = pathlib.Path(MANIFEST).read_text(encoding="utf-8")
        self.targets = set(re.findall(r"^([A-Za-z][\w-]*):(?!=)", text, re.MULTILINE))
        self.routes = self.read_routes()

    def wrong(self, document, number, what, expected):
        self.problems.append((document.path, number, f"{what}; expected {expected}"))

    def document(self, path):
        if path not in self.documents:
            self.documents[path] = Document(path)
        return self.documents[path]

    # Links

    def check_links(self, document):
        for number, line in document.prose():
            bare = re.sub(r"`+[^`]*`+", "", line)
            targets = re.findall(r"\]\(<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)", bare)
            targets += re.findall(r"^\s*\[[^\]]+\]:\s+(\S+)", bare)
            for target in targets:
                self.check_link(document, number, target)

    def check_link(self, document, number, target):
        if re.match(r"[a-zA-Z][a-zA-Z0-9+.-]*:", target) or target.startswith("//"):
            return
        self.counts["links"] += 1
        path, _, anchor = target.partition("#")
        path = urllib.parse.unquote(path)
        place = os.path.normpath(os.path.join(os.path.dirname(document.path), path)) if path else document.path
        if place.startswith("..") or os.path.isabs(path):
            return self.wrong(document, number, f"the link {target} leaves the repository", "a file of it")
        if not os.path.exists(place):
            return self.wrong(document, number, f"the link {target} leads to nothing", f"a file {place}")
        if anchor and place.endswith(".md"):
            if urllib.parse.unquote(anchor) not in self.document(place).anchors:
                known = {f"#{name}" for name in self.document(place).anchors}
                self.wrong(document, number, f"{place} has no heading #{anchor}", near(f"#{anchor}", known))
        elif anchor and os.path.isdir(place):
            self.wrong(document, number, f"{target} has an anchor in a folder", "a file")

    # Paths in backticks

    def check_paths(self, document):
        for number, line in document.prose():
            for text in re.findall(r"`([^`]+)`", line):
                for word in text.split():
                    word = word.strip("\"',;()")
                    if not word.startswith(PATH_STARTS) or re.search(r"[<>*{}$…]|^\w+://", word):
                        continue
                    # Words in capitals stand for something: Corpus/TARGET.
                    if re.search(r"/[A-Z][A-Z_]+(/|$)", word):
                        continue
                    self.counts["paths"] += 1
                    path = word.split("#")[0].split(":")[0].rstrip(".")
                    if not os.path.exists(path):
                        self.wrong(document, number, f"there is no {path}", "a path of the repository")

    # make

    def check_make(self, document):
        for number, line in document.prose():
            for text in re.findall(r"`([^`]+)`", line):
                self.check_make_words(document, number, text.split())
        for number, line in document.commands():
            for command in simple_commands(line):
                self.check_make_words(document, number, command)
        for number, line in document.code(""):
            self.check_make_words(document, number, line.split("  ")[0].split())

    def check_make_words(self, document, number, command):
        command = list(command)
        # Settings before it, where the text was not read as shell.
        while command and re.match(r"[A-Z_]+=", command[0]):
            command.pop(0)
        if not command or command[0] != "make":
            return
        for word in command[1:]:
            if re.match(r"[A-Z_]+=", word):
                # The rest may belong to a value in quotes.
                break
            if word.startswith("-") or not re.fullmatch(r"[a-z][\w-]*", word):
                continue
            self.counts["make targets"] += 1
            if word not in self.targets:
                self.wrong(document, number, f"make has no target {word}", near(word, self.targets))

    # earshot

    def help(self, commands):
        """The text of a command's help, None where there is no such command."""
        if commands not in self.helps:
            run = subprocess.run([self.binary, "help", *commands], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)
            # An unknown word is taken for an argument of the command before it: the usage line says what the help is of.
            usage = re.search(r"^USAGE: (.*)", run.stdout, re.MULTILINE)
            fits = usage and usage.group(1).startswith(" ".join(("earshot", *commands)))
            self.helps[commands] = run.stdout if run.returncode == 0 and fits else None
        return self.helps[commands]

    @staticmethod
    def subcommands(text):
        """The commands that a help lists under …SUBCOMMANDS:."""
        found = []
        for block in re.findall(r"^.*SUBCOMMANDS:\n((?:  .*\n?)*)", text, re.MULTILINE):
            found += re.findall(r"^  (\S+)", block, re.MULTILINE)
        return found

    def check_earshot(self, document):
        if not self.binary:
            return
        for number, line in document.commands():
            for command in simple_commands(line):
                if os.path.basename(command[0]) == "earshot":
                    self.check_earshot_words(document, number, command[1:])

    def check_earshot_words(self, document, number, given):
        self.counts["earshot commands"] += 1
        commands, text = (), self.help(())
        for word in given:
            if not re.fullmatch(r"[a-z][a-z-]*", word) or not self.subcommands(text):
                break
            inner = self.help((*commands, word))
            if inner is None:
                name = " ".join(("earshot", *commands, word))
                return self.wrong(document, number, f"there is no command {name}", near(word, self.subcommands(text)))
            commands, text = (*commands, word), inner
        usual = re.search(r"^  (\S+) \(default\)", text, re.MULTILINE)
        if usual:
            # Without a subcommand it is this one.
            text += self.help((*commands, usual.group(1))) or ""
        elif self.subcommands(text):
            name = " ".join(("earshot", *commands))
            return self.wrong(document, number, f"{name} is no whole command", f"it with one of {', '.join(self.subcommands(text))}")
        for word in given:
            if not re.match(r"--[a-z]", word):
                continue
            option = word.split("=")[0]
            self.counts["options"] += 1
            known = set(re.findall(r"--[a-z][a-z0-9-]*", text))
            if option not in known:
                name = " ".join(("earshot", *commands))
                self.wrong(document, number, f"{name} has no option {option}", near(option, known))

    # Routes

    def read_routes(self):
        """The paths below /api/v1 of the server's calls; a name in braces stands for any part."""
        routes = set()
        for path in tracked(ROUTES):
            source = pathlib.Path(path).read_text(encoding="utf-8")
            routes.update(re.findall(r'(?:Control)?Route(?:<\w+>)?\(\s*(?:raw: |file: |storing: |table: )?(?:\.\w+,\s*)?"(/[^"\s]*)"', source))
            # One declaration for several calls: Self.room("close", …) of "/rooms/{roomId}/\(action)".
            for pattern in [route for route in routes if r"\(action)" in route]:
                routes.discard(pattern)
                for action in re.findall(r'Self\.room\(\s*"(\w+)"', source):
                    routes.add(pattern.replace(r"\(action)", action))
        if not routes:
            sys.exit(f"docs-check: no routes in {ROUTES}: has their form changed?")
        return {tuple(route.split("/")[1:]) for route in routes}

    def has_route(self, parts):
        def fits(route):
            return len(route) == len(parts) and all(r.startswith("{") or r == p for r, p in zip(route, parts))

        return any(fits(route) for route in self.routes)

    def check_routes(self, document):
        for number, line in document.prose():
            for text in re.findall(r"`((?:[A-Z]+ )?/api/v1/[^`]*)`", line):
                # "/rooms…" stands for many.
                if "…" not in text:
                    self.check_route(document, number, text)
        for number, line in document.commands():
            for command in simple_commands(line):
                if command[0] != "curl":
                    continue
                for word in command[1:]:
                    self.check_route(document, number, word)

    def check_route(self, document, number, word):
        found = re.search(r"(?<!/classroom)/api/v1(/[^?#\s]*)?", word)
        if not found:
            return
        self.counts["routes"] += 1
        path = found.group(1) or "/"
        parts = tuple(path.split("/")[1:])
        if not self.has_route(parts):
            self.wrong(document, number, f"the API has no /api/v1{path}", near(path, {"/" + "/".join(route) for route in self.routes}))

    # Tables

    def check_tables(self, document):
        if document.path in PAGES_MADE:
            return
        header, last = [], 0
        for number, line in document.prose():
            if not line.startswith("|"):
                continue
            cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip())[1:]]
            if number != last + 1:
                header = cells
            last = number
            for column, cell in enumerate(cells):
                self.counts["table cells"] += bool(cell)
                if len(cell) > LONGEST_CELL and header[column : column + 1] != [COLUMN_MADE]:
                    self.wrong(document, number, f"a table cell of {len(cell)} characters, {cell[:30]} …", f"{LONGEST_CELL} at most")

    def run(self):
        names = tracked("*.md")
        for name in names:
            document = self.document(name)
            for check in (self.check_links, self.check_paths, self.check_make, self.check_earshot, self.check_routes, self.check_tables):
                check(document)
        for path, number, text in sorted(self.problems):
            print(f"{path}:{number}: {text}")
        left_out = "" if self.binary else "; no earshot binary, so its commands were not looked at"
        found = ", ".join(f"{count} {what}" for what, count in self.counts.items() if self.binary or what not in ("earshot commands", "options"))
        verdict = f"{len(self.problems)} wrong" if self.problems else "all right"
        print(f"docs-check: {len(names)} files: {found}{left_out}: {verdict}")
        return 1 if self.problems else 0


if __name__ == "__main__":
    sys.exit(Checker(sys.argv[1] if len(sys.argv) > 1 else None).run())
