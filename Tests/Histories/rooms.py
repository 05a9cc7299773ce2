"""Each room on its own: an order of its calls that the model allows, and that makes the feed's events one by one."""

import bisect

from calls import NEW
from keys import is_no_word, settle
from looks import SEEN
from model import FOREVER, TOLERANCE, clock, room_text
from report import Violation, call_line, event_line
from search import Op, Search, is_read

CALLS = set("create get patch renew close expire forbid resume like delete join leave kick members ban unban".split())
# Lists, and what each is for one room of it.
LISTS = {"list": "listed", "bans": "banned"}
# Reasons of a place that nothing fits.
MOST_REASONS = 4


class Ups:
    """When each run of the server was ready."""

    def __init__(self, entries):
        self.times = sorted(entry["end"] for entry in entries if entry["what"] == "up") or [0.0]

    def before(self, instant):
        return self.times[max(0, bisect.bisect_right(self.times, instant) - 1)]


def downs_of(entries):
    return {entry["run"]: entry["end"] for entry in entries if entry["what"] == "down"}


def is_too_late(entry):
    """Whether a ban was refused because its end had passed on the way."""
    return entry["status"] == 400 and entry["asked"].get("until", FOREVER) <= entry["end"] + TOLERANCE


def operations(entries):
    """Returns ({room: operations}, violations)."""
    calls = [entry for entry in entries if entry["what"] == "call"]
    downs, ups = downs_of(entries), Ups(entries)
    rooms = {entry["room"]: [] for entry in calls if entry.get("room")}
    # A call refused for its input says nothing about the room. If it had an effect, no other call explains that.
    invalid = [entry for entry in calls if "invalid" in entry["asked"] or is_too_late(entry)]
    left_out = set(map(id, invalid))
    settled, violations = settle([entry for entry in calls if entry["op"] in CALLS and id(entry) not in left_out], downs)
    for entry in invalid:
        if entry["status"] not in (None, 400) and not is_no_word(entry):
            text = "a call that asks for what cannot be was not refused for that"
            violations.append(Violation(f"room {entry['room']}", text, [call_line(entry)]))
    for entry, start, end, group in settled:
        status = entry["status"]
        if entry.get("other") or (status is None and (start > end or entry["op"] in SEEN)):
            # It says nothing about the room.
            continue
        rooms[entry["room"]].append(
            Op(entry["op"], start, end, entry["asked"], status, entry["answer"], entry["error"], entry.get("ifMatch"), entry["client"], group,
               ups.before(start), entry))  # fmt: skip
    for entry in calls:
        if entry["op"] in LISTS and entry["status"] == 200:
            violations += _listed(entry, LISTS[entry["op"]], rooms, ups)
    return rooms, violations


def _listed(entry, kind, rooms, ups):
    """A list is a look at each room, of which each counts by itself."""
    answer, violations = entry["answer"], []
    for room, ops in rooms.items():
        shown = answer["rooms"].get(room)
        up = ups.before(entry["start"])
        ops.append(Op(kind, entry["start"], entry["end"], entry["asked"], 200, shown, client=entry["client"], up=up, entry=entry))
    if answer["total"] != answer["count"] or answer["next"] is not None:
        text = f"it counts {answer['total']} and shows {answer['count']} on its only page"
        violations.append(Violation("list", text, [call_line(entry)]))
    strange = set(answer["rooms"]) - set(rooms)
    if strange:
        violations.append(Violation("list", f"it shows rooms that nobody made: {', '.join(sorted(strange))}", [call_line(entry)]))
    return violations


def check(entries, events, on_room=None):
    """`events`: those of the feed by room, in order. Returns (violations, {event id: when its call was answered, or None for deadlines})."""
    rooms, violations = operations(entries)
    causes = {}
    for room, ops in sorted(rooms.items()):
        mine = events.get(room, [])
        outcome = Search(ops, NEW, mine).run()
        if on_room:
            on_room(room, len(ops), len(mine))
        if outcome.order is None:
            violations.append(_explain(room, ops, mine, outcome))
            continue
        told = 0
        for turn in outcome.order:
            for event in mine[told : turn.room.told]:
                causes[event["id"]] = turn.op
            told = turn.room.told
    for room in set(events) - set(rooms):
        violations.append(Violation(f"room {room}", "the feed has events of a room that nobody made", map(event_line, events[room][:5])))
    return violations, causes


def _explain(room, ops, events, guided):
    """The violation, with or without the feed, by as few calls as show it."""
    if not guided.is_decided:
        return Violation(f"room {room}", f"the search for an order of its {len(ops)} calls was given up: it has too many")
    alone = Search(ops, NEW, None, most=300_000).run()
    if alone.order is None and alone.is_decided:
        start, left = smallest(ops, alone, None)
        text = "no order of the calls explains their answers"
        return Violation(f"room {room}", text, _lines(start, left, alone, None))
    start, left = smallest(ops, guided, events)
    text = "no order of the calls explains the feed's events"
    return Violation(f"room {room}", text, _lines(start, left, guided, events))


def smallest(ops, outcome, events):
    """A room on the longest way that fits, some calls before its end, and as few of the calls from there on as do not fit."""
    turns = outcome.stuck
    reached = {id(turn.op) for turn in turns if turn.op}
    rest = [op for op in ops if id(op) not in reached]
    stop = min((op.end for op in rest if op.is_sure), default=float("inf"))
    # Calls that began after the end of the call that cannot be placed have no part in it.
    rest = [op for op in rest if op.start <= stop]

    def fails(part):
        result = Search(part, start, _until(start, events, turns), most=20_000).run()
        return result.order is None and result.is_decided

    for back in (12, 40, 120, len(turns)):
        place = max(0, len(turns) - back)
        start = turns[place - 1].room if place else NEW
        left = [turn.op for turn in turns[place:] if turn.op] + rest
        if fails(left):
            break
    else:
        return start, left
    # Looks are left out by halves, quarters, … and one by one, as long as what is left still does not fit.
    reads = [op for op in left if is_read(op)]
    size = max(1, len(reads) // 2)
    while reads:
        for place in range(0, len(reads), size):
            dropped = set(map(id, reads[place : place + size]))
            part = [op for op in left if id(op) not in dropped]
            if fails(part):
                left = part
        if size == 1:
            break
        size //= 2
        there = set(map(id, left))
        reads = [op for op in reads if id(op) in there]
    return start, left


def _until(start, events, turns):
    """The events that the part is to explain: those up to the first that did not fit."""
    if events is None:
        return None
    told = max([turn.room.told for turn in turns], default=start.told)
    return events[: told + 1]


def _lines(start, left, outcome, events):
    lines = [f"before, in an order that fits: {room_text(start)}"]
    first = min((op.start for op in left if op.is_sure), default=0)
    had = {id(turn.op) for turn in outcome.stuck}
    for op in sorted(left, key=lambda op: op.start):
        # Lost calls of long ago are possible still, and of no interest.
        if op.is_sure or op.start >= first or id(op) in had:
            lines.append(_op_line(op))
    last = outcome.stuck[-1].room if outcome.stuck else NEW
    lines.append(f"the longest way that fits leads to: {room_text(last)}")
    if events is not None:
        following = events[last.told : last.told + 2]
        lines += [f"next in the feed: {event_line(event)}" for event in following] or ["the feed has nothing more"]
    lines.append("and nothing goes on from there:")
    reasons = sorted(outcome.reasons, key=lambda item: (item[0] is None, item[0].end if item[0] else 0))
    lines += [f"  {_short(op)}: {why}" for op, why in reasons[:MOST_REASONS]]
    return lines


def _op_line(op):
    if op.kind not in LISTS.values():
        return call_line(op.entry)
    if op.kind == "banned":
        shown = "not in it" if op.answer is None else f"forbidden until {clock(op.answer['until'])}"
        return f"{clock(op.start)} – {clock(op.end)}  client {op.client}  list of forbidden streams  → {shown}"
    shown = "not in it" if op.answer is None else f"{op.answer['state']}, event {op.answer['version'].partition('.')[2]}"
    states = f" of {', '.join(op.asked['states'])}" if op.asked["states"] else ""
    return f"{clock(op.start)} – {clock(op.end)}  client {op.client}  list{states}  → {shown}"


def _short(op):
    return f"{op.kind} of client {op.client} at {clock(op.start)}" if op else "the feed"
