"""All checks of a history, in the order in which their findings are of use."""

import feed
import rooms
import tokens
from report import Violation


# Milliseconds by which the machine's clock may be moved while a history is recorded.
MOST_DRIFT = 20


def is_skewed(entries):
    """Whether the machine's clock was moved so far that deadlines cannot be judged."""
    return any(entry["driftMs"] > MOST_DRIFT for entry in entries if entry["what"] == "end")


def check(entries, on_room=None):
    """The violations of a recorded history; none when it is as it should be."""
    if entries[-1]["what"] != "end":
        return [Violation("history", "it has no end: its recording was broken off")]
    if is_skewed(entries):
        return [Violation("history", "the machine's clock was set while it was recorded: record another one")]
    violations, by_id = feed.check_reads(entries)
    found, causes = rooms.check(entries, feed.by_room(by_id), on_room)
    violations += found
    violations += tokens.check(entries)
    if not violations:
        # The cause of an event is known only when every call is explained.
        violations += feed.check_freshness(entries, causes, by_id)
    return violations


def figures(entries):
    """The history's figures, in a line."""
    calls = [entry for entry in entries if entry["what"] == "call"]
    lost = sum(entry["status"] is None for entry in calls)
    replayed = sum(bool(entry.get("replayed")) for entry in calls)
    refused = sum(entry["status"] is not None and entry["status"] >= 400 for entry in calls)
    events = sum(entry["what"] == "event" for entry in entries)
    reads = sum(entry["what"] == "feed" for entry in entries)
    kills = sum(entry["what"] == "down" for entry in entries)
    return (
        f"{len(calls)} calls ({lost} without an answer, {refused} refused, {replayed} repeated by key), {events} events in {reads} reads, "
        f"{kills} kills"
    )
