"""Idempotency keys: of all calls with one key, the one that had the effect; and whether each got the same answer."""

from report import Violation, call_line

# Nothing was done, and nothing is said about the room.
NO_WORD = {429, 503}


def is_no_word(entry):
    """Whether the answer only says to come again."""
    if entry["status"] in NO_WORD:
        return True
    return entry["status"] == 409 and (entry["error"] or {}).get("rule") == "in_progress"


def lost_end(entry, downs):
    """Until when a call without an answer may have been carried out: until the kill of the server that had it."""
    return downs.get(entry["run"], float("inf"))


def settle(entries, downs):
    """Returns (calls, violations). A call is (entry, start, end, group): `end` is when it had taken effect at the latest, and of those with
    the same group one at most had an effect. Calls that only repeat another are left out."""
    by_key, calls, violations = {}, [], []
    for entry in entries:
        if entry["status"] is not None and is_no_word(entry):
            continue
        if entry.get("key") is None:
            calls.append((entry, entry["start"], _end(entry, downs), None))
        else:
            by_key.setdefault(entry["key"], []).append(entry)
    for key, attempts in by_key.items():
        found, wrong = _of_key(key, sorted(attempts, key=lambda entry: entry["start"]), downs)
        calls += found
        violations += wrong
    return calls, violations


def _end(entry, downs):
    return lost_end(entry, downs) if entry["status"] is None else entry["end"]


def _of_key(key, attempts, downs):
    own = [entry for entry in attempts if not entry.get("other")]
    done = [entry for entry in own if entry["status"] is not None and entry["status"] < 400]
    fresh = [entry for entry in done if not entry["replayed"]]
    lost = [entry for entry in own if entry["status"] is None]
    refused = [entry for entry in own if entry["status"] is not None and entry["status"] >= 400]

    def wrong(text, which):
        return Violation("idempotency key", f"{text} (key {key})", [call_line(entry) for entry in which])

    violations = []
    if len(fresh) > 1:
        violations.append(wrong("one key was carried out twice", attempts))
    if len({entry["digest"] for entry in done}) > 1:
        violations.append(wrong("one key got two different answers", attempts))
    if done and not fresh and not lost:
        violations.append(wrong("an answer was repeated that nobody had been given", attempts))
    first_done = min((entry["end"] for entry in done), default=float("inf"))
    for entry in refused:
        # A success is repeated with the same answer; only a refusal is judged anew.
        if entry["start"] > first_done:
            violations.append(wrong("a key that had succeeded was refused later", attempts))
            break
    for entry in attempts:
        if entry.get("other") and entry["start"] > first_done and entry["status"] not in (None, 422):
            violations.append(wrong("a key that had succeeded was taken for another request", attempts))
            break
    if violations:
        return [], violations
    calls = [(entry, entry["start"], entry["end"], None) for entry in refused]
    if not done:
        return calls + [(entry, entry["start"], lost_end(entry, downs), f"key {key}") for entry in lost], []
    if fresh:
        return calls + [(fresh[0], fresh[0]["start"], min(fresh[0]["end"], first_done), None)], []
    # One of the lost ones did it, before its answer was first repeated.
    last = max(lost_end(entry, downs) for entry in lost)
    start = min(entry["start"] for entry in lost)
    return calls + [(done[0], start, min(first_done, last), None)], []
