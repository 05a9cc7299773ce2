"""Wing and Gong's search for an order of calls that a model allows, with Lowe's memory of the configurations seen.

A configuration is the set of calls that have taken their turn and the state that they left. A call may be next when every call that ended before
it began has had its turn. Deadlines are turns too: they may come once their time has. A call whose answer was lost may have its turn until the
server that had it was killed, or never.
"""

from calls import apply
from looks import SEEN
from model import TOLERANCE, Misfit, due, pass_time


class Op:
    """One call as the search sees it. `status` None: its answer was lost. `group`: of these at most one has its turn."""

    __slots__ = ("kind", "start", "end", "client", "asked", "status", "answer", "error", "if_match", "group", "up", "entry", "is_sure")

    def __init__(
        self, kind, start, end, asked=None, status=200, answer=None, error=None, if_match=None, client=0, group=None, up=0.0, entry=None
    ):
        self.kind = kind
        self.start = start
        self.end = end
        self.client = client
        self.asked = asked or {}
        self.status = status
        self.answer = answer
        self.error = error
        self.if_match = if_match
        self.group = group
        self.up = up
        self.entry = entry
        self.is_sure = status is not None


class Turn:
    """A step of the order that was found: a call, or a deadline (`op` None), and the room after it."""

    __slots__ = ("op", "room", "what")

    def __init__(self, op, room, what=None):
        self.op = op
        self.room = room
        self.what = what


class Outcome:
    """`order` when there is one. Otherwise the longest way that led somewhere, and why nothing goes on from there."""

    def __init__(self, order, stuck=None, reasons=(), is_decided=True):
        self.order = order
        self.stuck = stuck or []
        self.reasons = list(reasons)
        self.is_decided = is_decided


class _Frame:
    """`done`: calls that have had their turn; `left`: sure ones that have not."""

    __slots__ = ("low", "mask", "floor", "room", "turn", "done", "left", "branches", "reasons")

    def __init__(self, low, mask, floor, room, turn, done, left):
        self.low, self.mask, self.floor, self.room, self.turn, self.done, self.left = low, mask, floor, room, turn, done, left
        self.branches = None
        self.reasons = []


class Search:
    """`events`: the room's events of the feed, in order, which the turns must make one by one; None leaves them out of account."""

    def __init__(self, ops, room, events=None, most=2_000_000):
        self.ops = sorted(ops, key=lambda op: (op.start, op.end))
        self.room = room
        self.events = events
        self.most = most
        self.groups = {}
        for place, op in enumerate(self.ops):
            if op.group is not None:
                self.groups.setdefault(op.group, []).append(place)

    def run(self):
        start = _Frame(0, 0, 0.0, self.room, Turn(None, self.room), 0, sum(op.is_sure for op in self.ops))
        stack, seen, steps = [start], set(), 0
        longest, longest_reasons, most_done = [], [], -1
        while stack:
            frame = stack[-1]
            if frame.branches is None:
                self._settle(frame)
                if frame.left == 0 and self._is_told(frame):
                    return Outcome([frame.turn for frame in stack[1:]])
                key = (frame.low, frame.mask, frame.room, frame.floor)
                if key in seen:
                    frame.branches = iter(())
                else:
                    seen.add(key)
                    steps += 1
                    if steps > self.most:
                        return Outcome(None, [frame.turn for frame in stack[1:]], is_decided=False)
                    frame.branches = iter(self._branches(frame))
            child = next(frame.branches, None)
            if child is not None:
                stack.append(child)
                continue
            # With as many calls, the way that came later has fewer deadlines.
            if frame.reasons and frame.done >= most_done:
                longest, longest_reasons, most_done = [frame.turn for frame in stack], frame.reasons, frame.done
            stack.pop()
        return Outcome(None, longest[1:], longest_reasons)

    def _is_told(self, frame):
        if self.events is None or frame.room.told == len(self.events):
            return True
        if frame.branches is None and not frame.reasons:
            frame.reasons.append((None, "the feed has events after that which no call explains"))
        return False

    def _settle(self, frame):
        """Passes over calls that have had their turn, and over lost ones that cannot have one any more."""
        low, mask = frame.low, frame.mask
        while low < len(self.ops):
            op = self.ops[low]
            if not (mask & 1 or (not op.is_sure and op.end < frame.floor)):
                break
            low += 1
            mask >>= 1
        frame.low, frame.mask = low, mask

    def _candidates(self, frame):
        """The calls that may be next, whether the first of them ends before all that are left begin, and when the first sure one ends."""
        found, first_end, first_sure_end = [], float("inf"), float("inf")
        mask, ops = frame.mask, self.ops
        for place in range(frame.low, len(ops)):
            op = ops[place]
            if op.start > first_sure_end:
                break
            if mask >> (place - frame.low) & 1:
                continue
            if not op.is_sure:
                if op.end < frame.floor:
                    continue
                first_end = min(first_end, op.end)
            elif op.end < first_sure_end:
                first_sure_end = op.end
            found.append(place)
        return found, min(first_end, first_sure_end), first_sure_end

    def _branches(self, frame):
        """The configurations that may be next, the likeliest first. One only where a look fits as things are: it may as well be now."""
        places, first_end, first_sure_end = self._candidates(frame)
        after = []
        for place in sorted(places, key=lambda place: (not self.ops[place].is_sure, self.ops[place].end)):
            op = self.ops[place]
            if op.end < frame.floor:
                frame.reasons.append((op, "it ended before a deadline that has had its turn"))
                continue
            try:
                rooms = apply(op, frame.room, self.events)
            except Misfit as misfit:
                frame.reasons.append((op, str(misfit)))
                continue
            if op.is_sure and op.start <= first_end and len(rooms) == 1 and rooms[0] is frame.room:
                return [self._taken(frame, place, frame.room)]
            after += [self._taken(frame, place, room) for room in rooms]
        for span, what in due(frame.room, first_sure_end):
            try:
                room, now = pass_time(frame.room, span, what, self.events)
            except Misfit as misfit:
                frame.reasons.append((None, f"the deadline at its time ({what}): {misfit}"))
                continue
            if now[0] <= first_sure_end + TOLERANCE:
                floor = max(frame.floor, now[0] - TOLERANCE)
                after.append(_Frame(frame.low, frame.mask, floor, room, Turn(None, room, what), frame.done, frame.left))
            else:
                frame.reasons.append((None, f"the deadline ({what}) comes after calls that are left"))
        return after

    def _taken(self, frame, place, room):
        op = self.ops[place]
        mask = frame.mask | 1 << (place - frame.low)
        for other in self.groups.get(op.group, ()) if op.group is not None else ():
            if other >= frame.low:
                mask |= 1 << (other - frame.low)
        return _Frame(frame.low, mask, max(frame.floor, op.start), room, Turn(op, room), frame.done + 1, frame.left - op.is_sure)


def is_read(op):
    """Whether it changes nothing, whatever it was answered."""
    return op.kind in SEEN or (op.is_sure and op.status >= 400)
