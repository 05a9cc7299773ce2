#!/usr/bin/env python3
"""manpages.py BINARY FOLDER [DATE]: writes earshot.1 and a page for each command, from what `BINARY --experimental-dump-help` prints.

Pages are in the man(7) language. DATE is year-month-day; the pages carry none without it.
"""

import json
import pathlib
import re
import subprocess
import sys

HEADING = re.compile(r"^[A-Z][A-Z ]+$")


def escaped(text):
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("`", "\\(ga").replace("'", "\\(aq").replace("~", "\\(ti").replace("^", "\\(ha")
    text = "".join(letter if ord(letter) < 128 else f"\\[u{ord(letter):04X}]" for letter in text)
    # A line that begins with a dot would be a request.
    return "\n".join("\\&" + line if line.startswith(".") else line for line in text.split("\n"))


def prose(text, heading=".SH"):
    """Paragraphs; indented lines stay as they are, lines of capitals become headings."""
    lines, literal = [], False
    for line in text.split("\n"):
        if literal and not line.startswith("  "):
            lines.append(".EE")
            literal = False
        if HEADING.match(line):
            lines.append(f"{heading} {line}" if heading == ".SH" else f".PP\n\\fB{line.capitalize()}\\fR")
        elif line.startswith("  "):
            if not literal:
                lines.append(".EX")
                literal = True
            lines.append(escaped(line))
        elif line.strip():
            lines.append(escaped(line))
        elif lines and not lines[-1].startswith((".PP", ".SH", ".EE")):
            lines.append(".PP")
    if literal:
        lines.append(".EE")
    # A paragraph without a text, before a heading or at the end, is none.
    return [line for line, after in zip(lines, lines[1:] + [".SH"]) if line != ".PP" or not after.startswith(".SH")]


def shown(items):
    return [item for item in items if item.get("shouldDisplay", True)]


def names(argument):
    return [("-" if name["kind"] == "short" else "--") + name["name"] for name in argument.get("names", [])]


def usage(argument):
    value = f"\\fI{escaped(argument.get('valueName', ''))}\\fR"
    if argument["kind"] == "positional":
        text = value
    else:
        preferred = argument["preferredName"]
        text = "\\fB" + escaped(("-" if preferred["kind"] == "short" else "--") + preferred["name"]) + "\\fR"
        if argument["kind"] == "option":
            text += " " + value
    if argument.get("isRepeating"):
        text += " \\&..."
    return f"[{text}]" if argument.get("isOptional") else text


def own(command, common=()):
    """The arguments that the command's page explains. Help and version are on every command, and on the overview's page."""
    everywhere = {"--help", "--version"}
    return [
        argument for argument in shown(command.get("arguments", []))
        if not everywhere & set(names(argument)) and argument not in common]


def synopsis(path, command, common=()):
    words = ["\\fB" + escaped(" ".join(path)) + "\\fR"] + [usage(argument) for argument in own(command, common)]
    if common:
        words.append("[\\fIcommon options\\fR]")
    return " ".join(words)


def options(arguments):
    lines = []
    for argument in arguments:
        tag = ", ".join("\\fB" + escaped(name) + "\\fR" for name in names(argument))
        value = f"\\fI{escaped(argument.get('valueName', ''))}\\fR"
        if argument["kind"] == "positional":
            tag = value
        elif argument["kind"] == "option":
            tag += " " + value
        text = argument.get("abstract", "")
        if argument.get("discussion"):
            text = f"{text} {argument['discussion']}".strip()
        if argument.get("allValues"):
            text += f" One of: {', '.join(argument['allValues'])}."
        if argument.get("defaultValue"):
            text += f" Default: {argument['defaultValue']}."
        lines += [".TP", tag, escaped(text.strip().replace("\n", " "))]
    return lines


def head(title, date):
    return [f'.TH "{escaped(title.upper())}" "1" "{date}" "Earshot" "Earshot"', ".nh"]


def children(command):
    return [child for child in shown(command.get("subcommands", [])) if child["commandName"] != "help"]


def split(lines):
    """The text before the first heading, and the rest."""
    cut = next((index for index, line in enumerate(lines) if line.startswith(".SH ")), len(lines))
    return lines[:cut], lines[cut:]


def page(command, date):
    """The page of one command, with those below it."""
    name = command["commandName"]
    title = f"earshot-{name}"
    below = children(command)
    first = own(below[0]) if len(below) > 1 else []
    common = [argument for argument in first if all(argument in own(child) for child in below)]
    lines = head(title, date) + [
        ".SH NAME", f"{escaped(title)} \\- {escaped(command.get('abstract', '').rstrip('.'))}", ".SH SYNOPSIS"]
    for child in below:
        lines += [".HP", synopsis(["earshot", name, child["commandName"]], child, common)]
    if not below:
        lines += [".HP", synopsis(["earshot", name], command)]
    about, rest = split(prose(command.get("discussion", "")))
    lines += [".SH DESCRIPTION"] + (about or [escaped(command.get("abstract", ""))])
    if below:
        lines.append(".SH COMMANDS")
    for child in below:
        lines += [f".SS {escaped(child['commandName'])}", escaped(child.get("abstract", ""))]
        if child.get("discussion"):
            about = prose(child["discussion"], heading=".PP")
            lines += about if about and about[0].startswith(".PP") else [".PP", *about]
        lines += options(own(child, common))
    if common:
        lines += [".SH COMMON OPTIONS"] + options(common)
    elif not below and own(command):
        lines += [".SH OPTIONS"] + options(own(command))
    return title, lines + rest + [".SH SEE ALSO", "\\fBearshot\\fR(1)"]


def overview(command, version, date):
    lines = head("earshot", date) + [
        ".SH NAME", f"earshot \\- {escaped(command['abstract'].rstrip('.'))}", ".SH SYNOPSIS", ".HP",
        "\\fBearshot\\fR [\\fIcommand\\fR] [\\fIoptions\\fR]", ".SH DESCRIPTION"]
    about, rest = split(prose(command.get("discussion", "")))
    lines += about + [".SH COMMANDS"]
    for child in children(command):
        lines += [".TP", f"\\fBearshot\\-{escaped(child['commandName'])}\\fR(1)", escaped(child.get("abstract", ""))]
    lines += [".SH OPTIONS"] + options(shown(command["arguments"])) + rest
    lines += [
        ".SH FILES", ".TP", "\\fI/etc/earshot/earshot.yaml\\fR", "The settings of the service that the Debian package installs.",
        ".TP", "\\fI/var/lib/earshot\\fR", "Its data: rooms, keys, recordings.",
        ".SH VERSION", escaped(version), ".SH SEE ALSO",
        ",\n".join(f"\\fBearshot\\-{escaped(child['commandName'])}\\fR(1)" for child in children(command))]
    return "earshot", lines


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit("usage: manpages.py BINARY FOLDER [DATE]")
    binary, folder, date = sys.argv[1], pathlib.Path(sys.argv[2]), (sys.argv[3:] or [""])[0]
    read = lambda *words: subprocess.run([binary, *words], capture_output=True, text=True, check=True).stdout
    command = json.loads(read("--experimental-dump-help"))["command"]
    folder.mkdir(parents=True, exist_ok=True)
    for title, lines in [overview(command, read("--version").strip(), date)] + [page(child, date) for child in children(command)]:
        (folder / f"{title}.1").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
