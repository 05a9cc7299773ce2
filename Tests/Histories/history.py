"""Calls and answers as they are recorded, kept in a file and read back.

Times are milliseconds since 1970 by a clock that only goes on: the wall clock's time when the recording began and the steady clock from there.
A history is a list of dicts, one a line in the file:

    begin   seed, and the settings of the run
    call    client, op, room, start, end (null: its answer was lost), run (of the server), what was asked, status, answer or error
    feed    reader, after, limit, room, start, end, run, events (places among the `event`s), last, isComplete
    event   as the feed told it, once for all reads that told the same
    down    run, start and end of a kill      up    run, when it was ready
    end     driftMs: how far the wall clock and the steady clock came apart
"""

import hashlib
import json
import threading
import time

ROOM_FIELDS = (
    "version instance title custom isPublic state stateReason likes members peak createdAt since endedAt expiresAt expiresReason "
    "forbiddenUntil forbidReason renewedUntil"
).split()
TIMES = {"createdAt", "since", "endedAt", "expiresAt", "forbiddenUntil", "renewedUntil", "revokedAt", "at"}

_days = {}


def instant(text):
    """Milliseconds since 1970 of a time as the API writes it; None of null."""
    if text is None:
        return None
    day = _days.get(text[:10])
    if day is None:
        day = _days[text[:10]] = int(time.mktime(time.strptime(text[:10] + " UTC", "%Y-%m-%d %Z")) - time.timezone) * 1000
    return day + (int(text[11:13]) * 3600 + int(text[14:16]) * 60 + int(text[17:19])) * 1000 + int(text[20:23])


def room_answer(data):
    """The parts of the API's room that the checker looks at."""
    shown = {name: instant(data[name]) if name in TIMES else data[name] for name in ROOM_FIELDS if name in data}
    shown["roomId"] = data["roomId"]
    shown["custom"] = compact(data["custom"])
    shown["neverStarted"] = round(data["policy"]["neverStarted"] * 1000)
    shown["retention"] = round(data["policy"]["retention"] * 1000)
    shown["isForbidden"] = data["streams"][0]["isForbidden"]
    return shown


def both_clocks():
    """The wall clock and the steady clock at the same moment, in milliseconds.

    A busy machine may stop this process between the two looks, which would seem as if the wall clock had been set: of five tries that
    one counts whose looks lie closest together.
    """
    tries = []
    for _ in range(5):
        before, wall, after = time.monotonic(), time.time(), time.monotonic()
        tries.append((after - before, wall * 1000, (before + after) * 500))
    return min(tries)[1:]


def compact(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def digest(value):
    """Tells whether two answers are the same, without keeping them."""
    return hashlib.sha256(compact(value).encode()).hexdigest()[:16]


class Recorder:
    """Collects a history. Any thread may add to it."""

    def __init__(self, **about):
        self._lock = threading.Lock()
        wall, steady = both_clocks()
        self._offset = wall - steady
        self._apart = [0.0, 0.0]
        self._places = {}
        self.entries = [{"what": "begin", **about}]

    def now(self):
        return time.monotonic() * 1000 + self._offset

    @property
    def told(self):
        """How many different events were told so far."""
        return len(self._places)

    def look(self):
        """Notes how far the wall clock has come away from the steady one."""
        wall, steady = both_clocks()
        apart = wall - steady - self._offset
        with self._lock:
            self._apart = [min(self._apart[0], apart), max(self._apart[1], apart)]

    def add(self, what, **entry):
        entry["what"] = what
        # One operation: list.append needs no lock.
        self.entries.append(entry)
        return entry

    def place(self, event):
        """The place of an event among those that were told."""
        text = compact(event)
        with self._lock:
            if text not in self._places:
                self._places[text] = len(self._places)
                self.entries.append({"what": "event", "event": {**event, "at": instant(event["at"])}})
            return self._places[text]

    def finish(self):
        self.look()
        self.add("end", driftMs=self._apart[1] - self._apart[0])
        return self.entries


def write(entries, path):
    with open(path, "w", encoding="utf-8") as file:
        for entry in entries:
            file.write(json.dumps(entry, separators=(",", ":")) + "\n")


def read(path):
    """Raises ValueError, which names the line that is not of a history."""
    entries = []
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            try:
                entry = json.loads(line)
                if entry["what"] not in {"begin", "call", "feed", "event", "down", "up", "end"}:
                    raise ValueError(entry["what"])
            except (ValueError, TypeError, KeyError) as error:
                raise ValueError(f"{path}:{number} is no line of a history: {error}") from None
            entries.append(entry)
    if not entries or entries[0]["what"] != "begin":
        raise ValueError(f"{path} does not begin as a history does")
    return entries
