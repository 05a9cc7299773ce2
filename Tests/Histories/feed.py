"""The event feed: what each reader was told, held against all others and against the calls."""

import bisect

from model import TOLERANCE
from report import Violation, call_line, event_line, feed_line


def events_of(entries):
    """The events in the order in which they were first recorded: what `place` counts."""
    return [entry["event"] for entry in entries if entry["what"] == "event"]


def check_reads(entries):
    """Returns (violations, events by id)."""
    told = events_of(entries)
    violations, by_id = [], {}
    for event in told:
        other = by_id.setdefault(event["id"], event)
        if other != event:
            violations.append(Violation("feed", "one id stands for two events", [event_line(other), event_line(event)]))
    reads = sorted((entry for entry in entries if entry["what"] == "feed"), key=lambda entry: entry["start"])
    ids = sorted(by_id)
    for entry in reads:
        seen = [told[place]["id"] for place in entry["events"]]
        entry["count"], entry["first"] = len(seen), seen[0] if seen else None
        violations += _one(entry, seen, by_id, ids)
    violations += _chains(reads)
    violations += _kept(reads, told, ids, by_id)
    violations += _numbers(by_id)
    return violations, by_id


def _one(entry, seen, by_id, ids):
    where = f"feed, reader {entry['reader']}"
    before = entry["after"]
    for identity in seen:
        if identity <= before:
            text = "an event was told twice" if identity in seen[: seen.index(identity)] or identity == before else "ids do not rise"
            return [Violation(where, text, [feed_line(entry), event_line(by_id[identity])])]
        before = identity
    if entry["last"] != (seen[-1] if seen else entry["after"]):
        return [Violation(where, f"`last` is {entry['last']}, expected {before}", [feed_line(entry)])]
    known = set(seen)
    low, high = _between(ids, entry["after"], entry["last"])
    missing = [identity for identity in ids[low:high] if identity not in known and entry["room"] in (None, by_id[identity]["roomId"])]
    if missing:
        return [Violation(where, "an event is missing that others were told", [feed_line(entry)] + [event_line(by_id[i]) for i in missing[:3]])]
    if not entry["isComplete"] and entry["limit"] and len(seen) < entry["limit"]:
        return [Violation(where, "a page that is not full says that more follows", [feed_line(entry)])]
    return []


def _between(ids, after, last):
    return bisect.bisect_right(ids, after), bisect.bisect_right(ids, last)


def _chains(reads):
    """Readers that go on with `after=` go on where they were."""
    at, violations = {}, []
    for entry in reads:
        if not entry["isChain"]:
            continue
        if entry["after"] != at.get(entry["reader"], entry["after"]):
            text = f"a read goes on after {entry['after']}, expected {at[entry['reader']]}"
            violations.append(Violation(f"feed, reader {entry['reader']}", text, [feed_line(entry)]))
        at[entry["reader"]] = entry["last"]
    return violations


def _kept(reads, told, ids, by_id):
    """Events that a reader got are all there at the end, after the last kill."""
    final = [entry for entry in reads if entry["reader"] == "final"]
    if not final:
        return []
    there = {told[place]["id"] for entry in final for place in entry["events"]}
    gone = [identity for identity in ids if identity not in there]
    return [Violation("feed", "events that were told are not there at the end", [event_line(by_id[i]) for i in gone[:5]])] if gone else []


def _numbers(by_id):
    """A room's events are numbered one by one."""
    last, violations = {}, []
    for _, event in sorted(by_id.items()):
        room = event["roomId"]
        if room is None:
            continue
        before = last.get(room)
        if event["number"] != (before["number"] if before else 0) + 1:
            text = f"its events are not numbered one by one: {event['number']} follows {before['number'] if before else 0}"
            violations.append(Violation(f"room {room}", text, [event_line(e) for e in (before, event) if e]))
        last[room] = event
    return violations


def by_room(by_id):
    """Each room's events in order; those of its stream, while it has no room, among them."""
    rooms = {}
    for _, event in sorted(by_id.items()):
        room = event["roomId"] or event["data"].get("name")
        if room is not None:
            rooms.setdefault(room, []).append(event)
    return rooms


def check_freshness(entries, causes, by_id):
    """A read that says that it is complete has every event that was answered, or told, before it began; none has one before its call."""
    violations = []
    # Sorted by the moment from which on an event must be seen.
    seen_from = {identity: op.end for identity, op in causes.items() if op is not None and op.is_sure}
    begun = {identity: op.start for identity, op in causes.items() if op is not None}
    told = events_of(entries)
    reads = [entry for entry in entries if entry["what"] == "feed"]
    for entry in reads:
        for place in entry["events"]:
            identity = told[place]["id"]
            seen_from[identity] = min(seen_from.get(identity, float("inf")), entry["end"])
            if not entry.get("isStream") and begun.get(identity, 0) > entry["end"] + TOLERANCE:
                lines = [feed_line(entry), event_line(told[place]), call_line(causes[identity].entry)]
                violations.append(Violation(f"feed, reader {entry['reader']}", "an event was told before its call was made", lines))
    order = sorted(seen_from.items(), key=lambda item: item[1])
    newest, place = {}, 0
    for entry in sorted(reads, key=lambda entry: entry["start"]):
        while place < len(order) and order[place][1] < entry["start"]:
            identity = order[place][0]
            for room in (None, by_id[identity]["roomId"]):
                newest[room] = max(newest.get(room, 0), identity)
            place += 1
        known = newest.get(entry["room"], 0)
        if entry["isComplete"] and known > entry["last"]:
            lines = [feed_line(entry), event_line(by_id[known])]
            if causes.get(known) is not None and causes[known].entry:
                lines.append(call_line(causes[known].entry))
            text = "it is said to be complete and lacks an event that was there before"
            violations.append(Violation(f"feed, reader {entry['reader']}", text, lines))
    return violations
