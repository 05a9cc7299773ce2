"""A room as one client after another would see it: what the README, the OpenAPI document and Sources/Rooms say, without streams.

A `Room` is the whole state of one id, also while there is no such room. A time that nobody has told yet is a span (earliest, latest), in
milliseconds since 1970; the first answer or event that tells it makes both ends the same. The calls are in calls.py.
"""

from typing import NamedTuple, Optional

FOREVER = float("inf")
# Between the server's clock and the recorder's: both read the same clocks, in whole milliseconds.
TOLERANCE = 50.0
# A deadline that has passed shows at the latest so long after it, while the server runs.
LATEST = 30_000.0

OPEN = ("created", "live", "interrupted")
NOT_ENDED = OPEN + ("forbidden",)
FORBIDDABLE = NOT_ENDED + ("expired",)
ENDED = ("expired", "closed")


class Room(NamedTuple):
    """All that is known of an id. `number`, `instance` and the ban outlive the room."""

    exists: bool = False
    number: int = 0
    instance: int = 0
    state: str = ""
    reason: str = ""
    title: str = ""
    custom: str = "{}"
    public: bool = True
    created: Optional[tuple] = None
    waiting: Optional[tuple] = None
    ended: Optional[tuple] = None
    # The ban of its stream.
    until: Optional[tuple] = None
    ban_reason: str = ""
    # The room's own, while it is forbidden.
    forbid_reason: Optional[str] = None
    never: int = 0
    retention: int = 0
    likes: int = 0
    peak: int = 0
    members: tuple = ()
    kicks: tuple = ()
    # How many of the feed's events are explained.
    told: int = 0


def exactly(instant):
    return (instant, instant)


def later(span, milliseconds):
    return (span[0] + milliseconds, span[1] + milliseconds)


def narrowed(span, instant, what):
    """The span as this one instant. Raises Misfit when it lies outside."""
    if span is None or instant is None:
        if span is None and instant is None:
            return None
        raise Misfit(f"{what} is {clock(instant)}, expected {clock(span)}")
    if span[0] == span[1]:
        if span[0] != instant:
            raise Misfit(f"{what} is {clock(instant)}, expected {clock(span)}")
        return span
    if not span[0] - TOLERANCE <= instant <= span[1] + TOLERANCE:
        raise Misfit(f"{what} is {clock(instant)}, expected {clock(span)}")
    return exactly(instant)


def clock(instant):
    """For messages: seconds within the hour."""
    if instant is None:
        return "none"
    if isinstance(instant, tuple):
        if instant[0] == instant[1]:
            return clock(instant[0])
        return f"{clock(instant[0])} to {clock(instant[1])}"
    if instant in (FOREVER, -FOREVER):
        return "any time"
    seconds, milliseconds = divmod(round(instant), 1000)
    return f"{seconds // 60 % 60:02}:{seconds % 60:02}.{milliseconds:03}"


class Misfit(Exception):
    """Why a call, an event or a deadline does not fit the room as it is."""


class Change:
    """One call or deadline on its way through a room. `events`: the feed's events of the room; None to leave them out of account."""

    __slots__ = ("room", "now", "events", "by_time")

    def __init__(self, room, now, events, by_time=False):
        self.room = room
        self.now = now
        self.events = events
        self.by_time = by_time

    def set(self, **fields):
        self.room = self.room._replace(**fields)

    def emit(self, kind, **expected):
        """One event of the room. Raises Misfit when the feed's next one is another."""
        self.set(number=self.room.number + 1)
        self._match(kind, self.room.number, {"instance": self.room.instance}, expected, self.room.state, self.room.reason)

    def emit_for_stream(self, kind):
        """An event of the stream while it has no room."""
        self._match(kind, 0, {}, {}, None, None)

    def _match(self, kind, number, outer, expected, state, reason):
        if self.events is None:
            return
        place = self.room.told
        if place >= len(self.events):
            raise Misfit(f"the feed has no event {kind} (number {number}) for it")
        event = self.events[place]
        data = event["data"]
        if event["kind"] != kind or event["number"] != number:
            raise Misfit(f"the feed's next event is {event_text(event)}, expected {kind} (number {number})")
        for name, value in outer.items():
            if event[name] != value:
                raise Misfit(f"{event_text(event)} has {name} {event[name]}, expected {value}")
        if state is not None:
            expected = {"state": state, "reason": reason, **expected}
        for name, value in expected.items():
            if data.get(name) != value:
                raise Misfit(f"{event_text(event)} has {name} {data.get(name)!r}, expected {value!r}")
        if (data.get("by") == "deadline") != self.by_time:
            raise Misfit(f"{event_text(event)} is by {data.get('by')}")
        self.now = narrowed(self.now, event["at"], f"the time of {event_text(event)}")
        self.set(told=place + 1)


def event_text(event):
    data = event["data"]
    of = "".join(f" {data[name]}" for name in ("userId", "title") if data.get(name))
    return f"{event['kind']}{of} (id {event['id']}, number {event['number']})"


# MARK: Time


def deadlines(room):
    """The deadlines ahead of the room: (span, what), in order of precedence."""
    found = []
    if room.until is not None:
        found.append((room.until, "ban"))
    if not room.exists:
        return found
    if room.state in ENDED:
        found.append((later(room.ended, room.retention), "forget"))
    elif room.state == "created":
        found.append((later(room.waiting, room.never), "expire"))
    return found


def due(room, latest):
    """The deadlines one of which may be the next to act by `latest`."""
    found = [item for item in deadlines(room) if item[0][0] <= latest + TOLERANCE]
    first = min((span[1] for span, _ in found), default=FOREVER)
    return [item for item in found if item[0][0] <= first]


def pass_time(room, span, what, events):
    """The room after a deadline, and the span in which that was. Raises Misfit when the feed tells otherwise."""
    change = Change(room, (span[0], FOREVER), events, by_time=True)
    if what == "expire":
        change.set(state="expired", reason="neverStarted", members=())
        change.emit("room.expired", **{"from": "created"})
        change.set(ended=change.now)
    elif what == "forget":
        forget(change)
    elif not room.exists:
        change.set(until=None, ban_reason="")
        change.emit_for_stream("stream.resumed")
    else:
        free(change, "resumeTime")
    return change.room, change.now


def forget(change):
    change.emit("room.deleted")
    change.set(exists=False, members=(), kicks=())


def free(change, reason):
    """Lifts the ban of the stream, and the room's with it."""
    room = change.room
    was_banned = room.until is not None
    was_forbidden = room.state == "forbidden"
    change.set(until=None, ban_reason="")
    if was_forbidden:
        change.set(state="created", reason=reason, forbid_reason=None)
    if was_banned:
        change.emit("stream.resumed")
    if was_forbidden:
        change.emit("room.unforbidden", **{"from": "forbidden"})
        change.set(waiting=change.now)


def room_text(room):
    """The state in words."""
    if not room.exists:
        ban = f", its stream forbidden until {clock(room.until)}" if room.until else ""
        return f"there is no such room (its last event was number {room.number}{ban})"
    parts = [f"{room.state} ({room.reason})", f"instance {room.instance}", f"event number {room.number}", f"title {room.title!r}"]
    parts.append(f"custom {room.custom}")
    parts.append(f"likes {room.likes}")
    parts.append(f"members {', '.join(f'{user} ({nick})' for user, nick in room.members) or 'none'}")
    if room.kicks:
        parts.append(f"kept out {', '.join(f'{user} until {clock(until)}' for user, until in room.kicks)}")
    parts += [f"{what} at {clock(span)}" for span, what in deadlines(room)]
    return "; ".join(parts)
