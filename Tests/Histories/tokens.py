"""Tokens: valid once their making was answered, of no use once their end was."""

from keys import settle
from report import Violation, call_line
from rooms import downs_of

INFINITY = float("inf")


class _Life:
    """The known life of one token, by its name."""

    def __init__(self, name):
        self.name = name
        self.makings = []
        self.ends = []
        self.uses = []


def check(entries):
    """All calls about tokens and with them."""
    calls = [entry for entry in entries if entry["what"] == "call" and entry["op"].startswith("token.")]
    downs = downs_of(entries)
    makings, violations = settle([entry for entry in calls if entry["op"] == "token.create"], downs)
    lives, names = {}, {}
    for entry, start, end, _ in makings:
        name = entry["asked"]["name"]
        life = lives.setdefault(name, _Life(name))
        if entry["status"] in (None, 201):
            life.makings.append((entry, start, end))
        if entry["status"] == 201:
            names.setdefault(entry["answer"]["tokenId"], set()).add(name)
    for identity, same in names.items():
        if len(same) > 1:
            violations.append(Violation("tokens", f"token {identity} was made under two names: {', '.join(sorted(same))}"))
    for entry in calls:
        name = entry["asked"].get("name")
        if entry["op"] == "token.revoke" and entry["status"] in (None, 200):
            lives[name].ends.append((entry, entry["start"], downs.get(entry["run"], INFINITY) if entry["status"] is None else entry["end"]))
        elif entry["op"] == "token.use" and entry["status"] in (200, 401):
            lives[name].uses.append(entry)
    for life in lives.values():
        violations += _uses(life)
    for entry in calls:
        if entry["op"] == "token.list" and entry["status"] == 200:
            violations += _list(entry, lives)
    return violations


def _uses(life):
    """A token is valid from its making to its end, and never after it was refused once."""
    violations = []
    ended = min((end for entry, _, end in life.ends if entry["status"] is not None), default=INFINITY)
    first_end = min((start for _, start, _ in life.ends), default=INFINITY)
    made = min((end for entry, _, end in life.makings if entry["status"] is not None), default=INFINITY)
    refused = min((use["end"] for use in life.uses if use["status"] == 401 and use["start"] > made), default=INFINITY)
    story = [call_line(entry) for entry, _, _ in life.makings + life.ends]
    for use in life.uses:
        if use["status"] == 200 and use["start"] > ended:
            violations.append(Violation(f"token {life.name}", "it was accepted after it had been revoked", story + [call_line(use)]))
        elif use["status"] == 200 and use["start"] > refused:
            violations.append(Violation(f"token {life.name}", "it was accepted after it had been refused", story + [call_line(use)]))
        elif use["status"] == 401 and made < use["start"] and use["end"] < first_end:
            violations.append(Violation(f"token {life.name}", "it was refused though nobody had revoked it", story + [call_line(use)]))
    return violations


def _list(entry, lives):
    violations = []
    shown = {}
    for name, is_revoked in entry["answer"]["tokens"]:
        if name in shown:
            violations.append(Violation(f"token {name}", "it is listed twice", [call_line(entry)]))
        shown[name] = is_revoked
    for name, life in lives.items():
        story = [call_line(e) for e, _, _ in life.makings + life.ends]
        story.append(f"{call_line({**entry, 'answer': None})}: {('revoked' if shown[name] else 'valid') if name in shown else 'not in it'}")
        made = any(call["status"] is not None and end < entry["start"] for call, _, end in life.makings)
        ended = any(call["status"] is not None and end < entry["start"] for call, _, end in life.ends)
        may_be_ended = any(start < entry["end"] for _, start, _ in life.ends)
        if made and name not in shown:
            violations.append(Violation(f"token {name}", "it was made and is not listed", story))
        elif name in shown and not any(start < entry["end"] for _, start, _ in life.makings):
            violations.append(Violation(f"token {name}", "it is listed before anybody asked for it", story))
        elif shown.get(name) is False and ended:
            violations.append(Violation(f"token {name}", "it is listed as valid after it had been revoked", story))
        elif shown.get(name) is True and not may_be_ended:
            violations.append(Violation(f"token {name}", "it is listed as revoked, and nobody did that", story))
    for name in set(shown) - set(lives):
        violations.append(Violation(f"token {name}", "it is listed, and nobody made it", [call_line({**entry, "answer": None})]))
    return violations
