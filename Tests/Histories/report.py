"""The faults of a history, in plain words."""

import json

from model import clock

MOST_LINES = 40


class Violation:
    """`where`: the room, reader, key or token. `lines`: the part of the history that shows it, in order."""

    def __init__(self, where, text, lines=()):
        self.where = where
        self.text = text
        self.lines = list(lines)

    def __str__(self):
        lines = self.lines
        if len(lines) > MOST_LINES:
            lines = [f"({len(lines) - MOST_LINES} lines are left out here)"] + lines[-MOST_LINES:]
        return "\n".join([f"{self.where}: {self.text}"] + [f"    {line}" for line in lines])


def call_line(entry):
    """One recorded call."""
    end = "lost" if entry["status"] is None else clock(entry["end"])
    asked = {name: value for name, value in entry["asked"].items() if value is not None}
    text = f"{clock(entry['start'])} – {end:9}  client {entry['client']}  {entry['op']} {entry.get('room') or ''}"
    if asked:
        text += f" {json.dumps(asked)}"
    if entry.get("ifMatch"):
        text += f" If-Match {entry['ifMatch']}"
    if entry.get("key"):
        text += f" key {entry['key']}"
    if entry["status"] is None:
        return f"{text}  → no answer"
    return f"{text}  → {entry['status']}{answer_text(entry)}{' (repeated)' if entry.get('replayed') else ''}"


def answer_text(entry):
    error, answer = entry.get("error"), entry.get("answer")
    if error:
        return " " + " ".join(str(error[name]) for name in ("type", "field", "state", "rule") if name in error)
    if not answer:
        return ""
    if "version" in answer:
        number = answer["version"].partition(".")[2]
        return f" {answer['state']}, event {number}, title {answer['title']!r}, likes {answer['likes']}, members {answer['members']}"
    if "rooms" in answer:
        return f" {len(answer['rooms'])} rooms"
    return f" {json.dumps(answer)}"


def feed_line(entry):
    of = f" of room {entry['room']}" if entry["room"] else ""
    ids = f"{entry['first']} … {entry['last']}" if entry["count"] else "none"
    asked = f"events after {entry['after']}{of}, at most {entry['limit']}"
    told = f"{entry['count']}: {ids}{', complete' if entry['isComplete'] else ''}"
    return f"{clock(entry['start'])} – {clock(entry['end'])}  reader {entry['reader']}: {asked}  → {told}"


def event_line(event):
    data = event["data"]
    shown = {name: data[name] for name in ("state", "reason", "from", "userId", "nick", "title", "changed", "by") if data.get(name)}
    return f"event {event['id']}: {event['kind']}, room {event['roomId']}, number {event['number']}, {json.dumps(shown)}"
