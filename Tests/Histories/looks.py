"""Answers held against the room: refusals, the room as it is shown, and the calls that only look."""

from model import ENDED, FOREVER, Misfit, clock, deadlines, due, exactly, later, narrowed


def refused(op, room, status, kind, **details):
    """The room as it is, when the call was refused in this way."""
    if op.status is None:
        raise Misfit("it has no effect there")
    text = ", ".join(f"{name} {value}" for name, value in details.items())
    if op.status != status:
        raise Misfit(f"it was answered {op.status}, expected {status} {kind}{' (' + text + ')' if text else ''}")
    error = op.error or {}
    for name, value in {"type": kind, **details}.items():
        if error.get(name) != value:
            raise Misfit(f"the refusal's {name} is {error.get(name)!r}, expected {value!r}")
    return room


def succeeded(op):
    if op.status is not None and not 200 <= op.status < 300:
        raise Misfit(f"it was refused ({op.status} {(op.error or {}).get('type')}), expected to succeed")


def _get(op, room):
    if not room.exists:
        return refused(op, room, 404, "not_found", field="roomId")
    succeeded(op)
    return observe(room, op.answer)


def _members(op, room):
    if not room.exists:
        return refused(op, room, 404, "not_found", field="roomId")
    succeeded(op)
    shown = tuple(tuple(pair) for pair in op.answer["members"])
    if shown != room.members or op.answer["total"] != len(shown):
        raise Misfit(f"it shows {list(shown)} (total {op.answer['total']}), expected {list(room.members)}")
    return room


def _listed(op, room):
    """One room of a list, or that it is not there."""
    states = op.asked["states"]
    fits = room.exists and (not states or room.state in states)
    if op.answer is None:
        if fits:
            raise Misfit(f"it is not in the list, expected it there ({room.state})")
        return room
    if not fits:
        raise Misfit(f"it is in the list as {op.answer['state']}, expected it not to be ({room.state or 'no such room'})")
    return observe(room, op.answer)


def _banned(op, room):
    """One stream of the list of forbidden ones, or that it is not there."""
    if (op.answer is None) != (room.until is None):
        raise Misfit("its stream is forbidden and not in the list" if op.answer is None else "its stream is in the list and not forbidden")
    if op.answer is None:
        return room
    if op.answer["reason"] != room.ban_reason:
        raise Misfit(f"the ban's reason is {op.answer['reason']!r}, expected {room.ban_reason!r}")
    until = narrowed(room.until, op.answer["until"], "the ban's end")
    return room if until == room.until else room._replace(until=until)


SEEN = {"get": _get, "members": _members, "listed": _listed, "banned": _banned}


def observe(room, shown):
    """The room, its times as the answer tells them. Raises Misfit where they differ."""
    if not room.exists:
        raise Misfit("it shows a room, expected none")
    made, _, number = shown["version"].partition(".")
    expected = {
        "instance": room.instance, "state": room.state, "stateReason": room.reason, "title": room.title, "custom": room.custom,
        "isPublic": room.public, "likes": room.likes, "members": len(room.members), "peak": room.peak, "neverStarted": room.never,
        "retention": room.retention, "forbidReason": room.forbid_reason, "isForbidden": room.until is not None,
    }  # fmt: skip
    if int(number) != room.number:
        raise Misfit(f"its version is that of event {number}, expected {room.number}")
    for name, value in expected.items():
        if shown[name] != value:
            raise Misfit(f"its {name} is {shown[name]!r}, expected {value!r}")
    found = {"created": narrowed(room.created, int(made, 36), "the time in its version")}
    narrowed(found["created"], shown["createdAt"], "createdAt")
    since = "ended" if room.state in ENDED else "waiting"
    found[since] = narrowed(getattr(room, since), shown["since"], "since")
    narrowed(found["ended"] if since == "ended" else None, shown["endedAt"], "endedAt")
    if room.state == "forbidden":
        found["until"] = narrowed(room.until, shown["forbiddenUntil"], "forbiddenUntil")
    elif shown["forbiddenUntil"] is not None:
        raise Misfit(f"forbiddenUntil is {clock(shown['forbiddenUntil'])}, expected none")
    if any(getattr(room, name) != value for name, value in found.items()):
        room = room._replace(**found)
    next_one = min((span[0] for span, _ in due(room, FOREVER)), default=None)
    if next_one is None or all(span[0] == span[1] for span, _ in deadlines(room)):
        narrowed(None if next_one is None else exactly(next_one), shown["expiresAt"], "expiresAt")
    if "renewedUntil" in shown:
        narrowed(later(room.waiting, room.never), shown["renewedUntil"], "renewedUntil")
    return room
