"""Small histories made by hand, for the checker's own tests: right ones, which a test then bends."""

import unittest

import checks
from history import digest

BEGIN = 1_790_000_000_000
NEVER = 300_000


def version(number, made=BEGIN + 10):
    digits, text = "0123456789abcdefghijklmnopqrstuvwxyz", ""
    while made:
        made, rest = divmod(made, 36)
        text = digits[rest] + text
    return f"{text}.{number}"


class Story:
    """Entries of a history, one call after the other, 10 ms each. The room "ash" is created at 10 ms."""

    def __init__(self):
        self.now = BEGIN
        self.calls, self.told, self.reads = [], [], []
        self.runs = [{"what": "up", "run": 1, "start": BEGIN - 100, "end": BEGIN - 50}]

    def room(self, number, **changes):
        """The room as an answer shows it."""
        since = changes.get("since", BEGIN + 10)
        shown = {
            "roomId": "ash", "version": version(number, changes.pop("made", BEGIN + 10)), "instance": 1, "title": "", "custom": "{}",
            "isPublic": True, "state": "created", "stateReason": "created", "likes": 0, "members": 0, "peak": 0, "createdAt": BEGIN + 10,
            "since": since, "endedAt": None, "expiresAt": since + NEVER, "expiresReason": "neverStarted", "forbiddenUntil": None,
            "forbidReason": None, "neverStarted": NEVER, "retention": 60_000, "isForbidden": False,
        }  # fmt: skip
        return {**shown, **changes}

    def call(self, op, answer=None, status=200, start=None, end=None, error=None, key=None, replayed=False, asked=None, room="ash", **more):
        """One call; its times follow those of the call before."""
        if start is None:
            start = self.now + 1
        if end is None:
            end = start + 18
        self.now = max(self.now, start + 9 if op == "create" else end)
        entry = {
            "what": "call", "client": len(self.calls), "op": op, "room": room, "asked": asked or {}, "ifMatch": None, "key": key, "run": 1,
            "status": status, "answer": answer, "error": error, "start": start, "end": None if status is None else end, "replayed": replayed,
            "digest": digest(answer), **more,
        }  # fmt: skip
        self.now = max(self.now, end)
        self.calls.append(entry)
        return entry

    def create(self, **changes):
        asked = {"title": "", "neverStarted": NEVER, "retention": 60_000}
        entry = self.call("create", self.room(1, **changes), 201, asked=asked)
        self.event("room.created", 1, BEGIN + 10)
        return entry

    def patch(self, title, number, **more):
        """A new title, and its event."""
        entry = self.call("patch", self.room(number, title=title), asked={"title": title}, **more)
        self.event("room.updated", number, entry["start"] + 5, changed=["title"])
        return entry

    def get(self, number, **changes):
        times = {name: changes.pop(name) for name in ("start", "end") if name in changes}
        return self.call("get", self.room(number, **changes), **times)

    def event(self, kind, number, at, state="created", reason="created", by="token:first", room="ash", **data):
        event = {
            "id": len(self.told) + 1, "number": number, "kind": kind, "roomId": room, "instance": 1, "at": round(at),
            "data": {"state": state, "reason": reason, "by": by, **data},
        }  # fmt: skip
        if kind == "room.created":
            event["data"]["title"] = ""
        self.told.append(event)
        return event

    def read(self, reader="one", after=0, ids=None, is_complete=True, limit=1_000, start=None, room=None):
        """A read of the feed: all events, or those with these ids."""
        start = self.now + 1 if start is None else start
        places = [place for place, event in enumerate(self.told) if (event["id"] > after if ids is None else event["id"] in ids)]
        last = self.told[places[-1]]["id"] if places else after
        self.now = max(self.now, start + 5)
        self.reads.append({
            "what": "feed", "reader": reader, "after": after, "room": room, "limit": limit, "start": start, "end": start + 5, "run": 1,
            "last": last, "isComplete": is_complete, "isChain": True, "events": places,
        })  # fmt: skip
        return self.reads[-1]

    def kill(self):
        self.now += 20
        self.runs.append({"what": "down", "run": 1, "start": self.now - 10, "end": self.now})
        self.runs.append({"what": "up", "run": 2, "start": self.now + 10, "end": self.now + 20})
        self.now += 30

    def entries(self):
        events = [{"what": "event", "event": event} for event in self.told]
        return [{"what": "begin", "seed": 0}, *self.runs, *self.calls, *events, *self.reads, {"what": "end", "driftMs": 0.0}]


class Case(unittest.TestCase):
    """The base of the tests of histories."""

    maxDiff = None

    def assertRight(self, story):
        self.assertEqual([str(violation) for violation in checks.check(story.entries())], [])

    def assertWrong(self, story, *words):
        """One violation at least, whose text has all these words."""
        texts = [str(violation) for violation in checks.check(story.entries())]
        self.assertTrue(any(all(word in text for word in words) for text in texts), f"{words} are not in {texts}")

    def begun(self):
        """A room with a new title."""
        story = Story()
        story.create()
        story.patch("one", 2)
        return story
