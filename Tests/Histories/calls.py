"""The effect of each call of the API on a room, and whether its answer fits. Calls that only look are in looks.py."""

from looks import SEEN, observe, refused, succeeded
from model import (
    ENDED, FORBIDDABLE, LATEST, NOT_ENDED, OPEN, TOLERANCE, Change, Misfit, Room, clock, deadlines, exactly, forget, free, later,
    narrowed,
)  # fmt: skip

def apply(op, room, events):
    """The rooms that may be after the call; empty when it does not fit. Raises Misfit, which says why, when it never does."""
    if op.kind in SEEN:
        for span, what in deadlines(room):
            if op.start > max(span[1], op.up) + LATEST:
                raise Misfit(f"the deadline at {clock(span)} ({what}) has not been applied")
        return [SEEN[op.kind](op, room)]
    # Each call applies what is due to its room; a ban without a room waits for the timer, or for the next room.
    for span, what in deadlines(room) if room.exists else ():
        if span[1] + TOLERANCE < op.start:
            raise Misfit(f"the deadline at {clock(span)} ({what}) comes first")
    if op.kind != "create":
        return [_apply(op, room, events)]
    # Whether a ban of the stream was over when the room was made, may be known from what follows alone.
    after, why = [], None
    for is_over in (False, True):
        try:
            after.append(_create(op, room, events, is_over))
        except Misfit as misfit:
            why = why or misfit
    if not after:
        raise why
    return list(dict.fromkeys(after))


def _now(op):
    return (op.start, op.end)


def _is_of(room, version):
    """Whether the room has this version."""
    made, _, number = version.partition(".")
    instant = int(made, 36) if made.isalnum() and number.isdigit() else None
    if instant is None or int(number) != room.number:
        return False
    return room.created[0] - TOLERANCE <= instant <= room.created[1] + TOLERANCE


def _apply(op, room, events):
    if op.kind in STREAM_CALLS:
        return STREAM_CALLS[op.kind](op, room, events)
    if not room.exists:
        return refused(op, room, 404, "not_found", field="roomId")
    if op.if_match is not None and not _is_of(room, op.if_match):
        return refused(op, room, 412, "precondition_failed", field="If-Match")
    return CALLS[op.kind](op, room, events)


def _requires(op, room, states):
    """The refusal of a call that does not fit the room's state; None when it does."""
    if room.state in states:
        return None
    return refused(op, room, 409, "wrong_state", state=room.state, allowed=list(states))


def _finish(op, change):
    """Holds the answer, if there is one, against the room."""
    if op.status is None or op.answer is None:
        return change.room
    return observe(change.room, op.answer)


# MARK: Calls that change


def _create(op, room, events, ban_is_over):
    if room.exists:
        return refused(op, room, 409, "conflict", field="roomId", state=room.state)
    succeeded(op)
    new, now = op.asked, _now(op)
    if room.until is None and ban_is_over:
        raise Misfit("its stream is not forbidden")
    change = Change(room, now, events)
    change.set(
        exists=True, instance=room.instance + 1, state="created", reason="created", title=new.get("title", ""),
        custom=new.get("custom", "{}"), public=new.get("isPublic", True), created=now, waiting=now, ended=None, forbid_reason=None,
        never=new["neverStarted"], retention=new["retention"], likes=0, peak=0, members=(), kicks=())  # fmt: skip
    change.emit("room.created", title=new.get("title", ""))
    change.set(created=change.now, waiting=change.now)
    if room.until is not None:
        if ban_is_over:
            if room.until[0] > change.now[1] + TOLERANCE:
                raise Misfit(f"its stream is forbidden until {clock(room.until)}")
            change.by_time = True
            change.set(until=None, ban_reason="")
            change.emit_for_stream("stream.resumed")
        else:
            if room.until[1] <= change.now[0] - TOLERANCE:
                raise Misfit(f"its stream was forbidden until {clock(room.until)} only")
            change.set(state="forbidden", reason="forbidden", forbid_reason=room.ban_reason)
            change.emit("stream.forbidden")
            change.emit("room.forbidden", **{"from": "created"})
    return _finish(op, change)


def _patch(op, room, events):
    if (refusal := _requires(op, room, NOT_ENDED)) is not None:
        return refusal
    succeeded(op)
    changed = {}
    for name, field in (("title", "title"), ("custom", "custom"), ("isPublic", "public"), ("neverStarted", "never")):
        if name in op.asked and op.asked[name] != getattr(room, field):
            changed[field] = op.asked[name]
    change = Change(room, _now(op), events)
    if changed:
        names = {"title": "title", "custom": "custom", "public": "isPublic", "never": "policy.neverStarted"}
        change.set(**changed)
        change.emit("room.updated", changed=[names[field] for field in names if field in changed])
    elif op.status is None:
        raise Misfit("it changes nothing")
    return _finish(op, change)


def _renew(op, room, events):
    if (refusal := _requires(op, room, OPEN)) is not None:
        return refusal
    succeeded(op)
    change = Change(room, _now(op), events)
    by = op.asked.get("ms")
    if by is not None:
        change.set(waiting=later(room.waiting, by))
    change.emit("room.renewed")
    if by is None:
        change.set(waiting=change.now)
    return _finish(op, change)


def _close(op, room, events):
    if room.state == "closed":
        succeeded(op)
        return _finish(op, Change(room, _now(op), events))
    return _end(op, room, events, "closed", FORBIDDABLE)


def _expire(op, room, events):
    return _end(op, room, events, "expired", OPEN)


def _end(op, room, events, state, allowed):
    if (refusal := _requires(op, room, allowed)) is not None:
        return refusal
    succeeded(op)
    change = Change(room, _now(op), events)
    _ended(change, state)
    return _finish(op, change)


def _ended(change, state):
    before = change.room.state
    change.set(state=state, reason=state, forbid_reason=None, members=())
    change.emit(f"room.{state}", **{"from": before})
    change.set(ended=change.now)


def _forbid(op, room, events):
    if (refusal := _requires(op, room, FORBIDDABLE)) is not None:
        return refusal
    succeeded(op)
    change = Change(room, _now(op), events)
    before, was_banned = room.state, room.until is not None
    if before == "forbidden":
        return _change_ban(op, change)
    if before == "expired":
        change.set(instance=room.instance + 1, ended=None, peak=0, likes=0)
    change.set(state="forbidden", reason="forbidden", forbid_reason=op.asked["reason"])
    asked = exactly(op.asked["until"]) if "until" in op.asked else later(_now(op), op.asked["ms"])
    if not was_banned:
        change.set(until=asked, ban_reason=op.asked["reason"])
        change.emit("stream.forbidden")
    change.emit("room.forbidden", **{"from": before, "forbidReason": op.asked["reason"]})
    if was_banned and asked[1] > room.until[0]:
        # A longer ban that the stream has already is kept.
        change.set(until=asked, ban_reason=op.asked["reason"])
    if "until" not in op.asked and change.room.until is asked:
        change.set(until=_end_of_ban(op, change))
    if before == "expired":
        change.set(waiting=change.now)
    return _finish(op, change)


def _change_ban(op, change):
    """Forbids a forbidden room again: with another time and reason."""
    old, reason = change.room, op.asked["reason"]
    asked = exactly(op.asked["until"]) if "until" in op.asked else later(_now(op), op.asked["ms"])
    change.set(until=asked, ban_reason=reason, forbid_reason=reason)
    if (old.until, old.ban_reason, old.forbid_reason) != (asked, reason, reason):
        change.emit("stream.forbidden")
    if "until" not in op.asked:
        change.set(until=_end_of_ban(op, change))
    return _finish(op, change)


def _end_of_ban(op, change):
    """So far from the call as was asked: from when it was read, which is a little before it has its turn."""
    # The server counts whole milliseconds: its call may seem to have been read before it was sent.
    first = min(op.start, change.now[1] - 1)
    return (first + op.asked["ms"], change.now[1] + op.asked["ms"])


def _resume(op, room, events):
    if (refusal := _requires(op, room, ("forbidden",))) is not None:
        return refusal
    succeeded(op)
    change = Change(room, _now(op), events)
    free(change, "resumed")
    return _finish(op, change)


def _ban(op, room, events):
    """Forbids the stream, whether it has a room or not; again: with another time."""
    succeeded(op)
    change = Change(room, _now(op), events)
    before, old, reason = room.state, room.until, op.asked["reason"]
    asked = exactly(op.asked["until"]) if "until" in op.asked else later(_now(op), op.asked["ms"])
    change.set(until=asked, ban_reason=reason)
    if not room.exists:
        change.emit_for_stream("stream.forbidden")
    elif old is None and before not in ENDED:
        change.set(state="forbidden", reason="forbidden", forbid_reason=reason)
        change.emit("stream.forbidden")
        change.emit("room.forbidden", **{"from": before})
    elif old != asked or room.ban_reason != reason:
        if before == "forbidden" and room.forbid_reason == room.ban_reason:
            change.set(forbid_reason=reason)
        change.emit("stream.forbidden")
    if "until" not in op.asked:
        change.set(until=_end_of_ban(op, change))
    if op.status is not None:
        change.set(until=narrowed(change.room.until, op.answer["until"], "forbiddenUntil"))
        if op.answer["reason"] != reason:
            raise Misfit(f"its reason is {op.answer['reason']!r}, expected {reason!r}")
    return change.room


def _unban(op, room, events):
    if room.until is None:
        return refused(op, room, 409, "wrong_state", allowed=["forbid"])
    succeeded(op)
    change = Change(room, _now(op), events)
    if room.exists:
        free(change, "resumed")
    else:
        change.set(until=None, ban_reason="")
        change.emit_for_stream("stream.resumed")
    return change.room


def _like(op, room, events):
    if (refusal := _requires(op, room, NOT_ENDED)) is not None:
        return refusal
    succeeded(op)
    change = Change(room, _now(op), events)
    change.set(likes=room.likes + op.asked["count"])
    return _finish(op, change)


def _delete(op, room, events):
    succeeded(op)
    change = Change(room, _now(op), events)
    if room.state not in ENDED:
        _ended(change, "closed")
    forget(change)
    return change.room


# MARK: Members


def _join(op, room, events):
    if (refusal := _requires(op, room, NOT_ENDED)) is not None:
        return refusal
    user, nick = op.asked["user"], op.asked["nick"]
    until = dict(room.kicks).get(user)
    if until is not None:
        if op.status == 409:
            if until[1] < op.start - TOLERANCE:
                raise Misfit(f"it was refused, but {user} is kept out until {clock(until)} only")
            return refused(op, room, 409, "conflict", field="userId")
        if until[0] > op.end + TOLERANCE:
            raise Misfit(f"{user} is kept out until {clock(until)}")
    succeeded(op)
    change = Change(room, _now(op), events)
    members = dict(room.members)
    is_new = user not in members
    members[user] = nick
    change.set(members=tuple(sorted(members.items())), peak=max(room.peak, len(members)))
    if is_new:
        change.emit("member.join", userId=user, nick=nick or None)
    return change.room


def _leave(op, room, events):
    return _gone(op, room, events, "member.leave")


def _kick(op, room, events):
    return _gone(op, room, events, "member.kick")


def _gone(op, room, events, kind):
    members = dict(room.members)
    user = op.asked["user"]
    if user not in members:
        return refused(op, room, 404, "not_found", field="userId")
    succeeded(op)
    change = Change(room, _now(op), events)
    del members[user]
    change.set(members=tuple(sorted(members.items())))
    change.emit(kind, userId=user)
    if op.asked.get("ms"):
        until = later(change.now, op.asked["ms"])
        kicks = dict(room.kicks)
        before = kicks.get(user)
        # A kick that lasts longer stays.
        kicks[user] = until if before is None else (max(before[0], until[0]), max(before[1], until[1]))
        change.set(kicks=tuple(sorted(kicks.items())))
    return change.room


CALLS = {
    "patch": _patch, "renew": _renew, "close": _close, "expire": _expire, "forbid": _forbid, "resume": _resume, "like": _like,
    "delete": _delete, "join": _join, "leave": _leave, "kick": _kick,
}  # fmt: skip


STREAM_CALLS = {"ban": _ban, "unban": _unban}


NEW = Room()
