"""Calls that change rooms, what the server has answered, and whether that is there afterwards."""

import collections
import dataclasses
import http.client
import threading
import time

# The server takes 1,000; each worker may be at one.
MOST_TOKENS = 900
_ACTIONS = (("forbid", "room.forbidden"), ("resume", "room.unforbidden"), ("close", "room.closed"))
_STATES = {"room.created": "created", "room.forbidden": "forbidden", "room.unforbidden": "created", "room.closed": "closed"}


@dataclasses.dataclass
class _Room:
    # The calls, in order: (kind of event, when the answer came in nanoseconds or None).
    asked: list = dataclasses.field(default_factory=list)


class Ledger:
    """The calls made to one data directory, over all runs of the server. Any thread."""

    def __init__(self, context):
        self.context = context
        self._lock = threading.Lock()
        self.rooms = {}
        # By name, when the answer came.
        self.bans = {}
        self.tokens = {}
        self.refusals = collections.Counter()
        # Recordings that the server has called finished, and when.
        self.finished = {}
        self.answers = 0

    # MARK: Asking

    def _answered(self, status, data, what, may_refuse):
        """Whether a change was confirmed."""
        if status < 300:
            self.answers += 1
            return True
        with self._lock:
            self.refusals[status] += 1
        # 507: the disk is full; 503: the store cannot be written.
        if not may_refuse or status not in (503, 507):
            self.context.find(f"{what} was answered {status}: {str(data)[:300]}")
        return False

    def _change(self, server, room, kind, path, body, headers, may_refuse):
        with self._lock:
            room.asked.append((kind, None))
        status, data = server.call("POST", path, body, headers=headers)
        if not self._answered(status, data, f"POST {path}", may_refuse):
            return False
        with self._lock:
            room.asked[-1] = (kind, time.monotonic_ns())
        return True

    def work_on_one(self, server, name, with_token=False, may_refuse=False):
        """A room from its creation to its end, a ban, and perhaps a token. Raises as ``Server.call`` does."""
        room = _Room()
        with self._lock:
            self.rooms[name] = room
        if not self._change(server, room, "room.created", "rooms", {"roomId": name}, {"Idempotency-Key": name}, may_refuse):
            return False
        for action, kind in _ACTIONS:
            # Some are left as they are.
            if hash_of(name, action) % 5 == 0:
                break
            if not self._change(server, room, kind, f"rooms/{name}/{action}", None, None, may_refuse):
                return False
        status, data = server.call("POST", f"streams/live/x{name}/forbid")
        if not self._answered(status, data, "a ban", may_refuse):
            return False
        self.bans[f"x{name}"] = time.monotonic_ns()
        if with_token and len(self.tokens) < MOST_TOKENS:
            status, data = server.call("POST", "tokens", {"name": f"t{name}", "role": "backend"})
            if self._answered(status, data, "a token", may_refuse):
                self.tokens[f"t{name}"] = time.monotonic_ns()
        return True

    def work(self, server, prefix, stop, workers=2, most=200, may_refuse=False, pause=0.0):
        """Threads that ask until `stop` is set or the server is gone; join them. `pause`: seconds between rooms."""

        def run(worker):
            for number in range(most):
                if stop.is_set():
                    return
                try:
                    if not self.work_on_one(server, f"{prefix}-{worker}-{number}", number % 4 == 0, may_refuse):
                        # The store is in trouble.
                        stop.wait(0.05)
                    stop.wait(pause)
                except TimeoutError:
                    # A call must be answered, whatever happens: unless the server is stopped or was killed.
                    if server.is_running and not stop.is_set():
                        self.context.find("a call had no answer for 15 s")
                    return
                except (OSError, http.client.HTTPException) as error:
                    if server.is_running and not stop.is_set() and not may_refuse:
                        # It may be ending at this moment.
                        stop.wait(0.5)
                        if server.is_running and not stop.is_set():
                            self.context.find(f"a call broke off: {error!r}")
                    return

        threads = [threading.Thread(target=run, args=(worker,), daemon=True) for worker in range(workers)]
        for thread in threads:
            thread.start()
        return threads

    def note_finished(self, server):
        """Remembers which recordings the server calls finished."""
        for item in server.recordings():
            if item["state"] == "finished" and item["recordingId"] not in self.finished:
                self.finished[item["recordingId"]] = (time.monotonic_ns(), item["duration"])

    # MARK: Comparing

    def compare(self, server, until_ns=None, where=""):
        """Holds the server's rooms, events, bans and tokens against what it has answered, up to a moment where one is given."""
        find = lambda text: self.context.find(f"{where}{text}")
        events = server.events()
        for text in event_problems(events):
            find(text)
        stored = collections.defaultdict(list)
        for event in events:
            if event["kind"] in _STATES and event["roomId"]:
                stored[event["roomId"]].append(event["kind"])
        states = self._states(server)
        with self._lock:
            rooms = {name: list(room.asked) for name, room in self.rooms.items()}
        for name, asked in rooms.items():
            there = stored.pop(name, [])
            wanted = [kind for kind, _ in asked]
            sure = sum(1 for _, at in asked if at is not None and (until_ns is None or at <= until_ns))
            if there != wanted[: len(there)] or len(there) < sure:
                find(f"room {name}: asked {wanted}, the first {sure} of them answered, stored {there}")
            elif there and states.get(name) != _STATES[there[-1]]:
                find(f"room {name}: its last event is {there[-1]}, and it is {states.get(name)}")
            if not there and name in states:
                find(f"room {name} is there, and its event is not")
        self._compare_names(server, events, until_ns, find)
        return events

    def compare_recordings(self, events, recordings, where=""):
        """Each finished recording was told once."""
        told = collections.Counter(event["data"]["recordingId"] for event in events if event["kind"] == "record.finished")
        for item in recordings:
            count = told[item["recordingId"]]
            if item["state"] == "finished" and count != 1:
                self.context.find(f"{where}recording {item['recordingId']} is finished, and that was told {count} times")

    @staticmethod
    def _states(server):
        return {room["roomId"]: room["state"] for room in server.pages("rooms?pageSize=200")}

    def _compare_names(self, server, events, until_ns, find):
        sure = lambda table: {name for name, at in table.items() if until_ns is None or at <= until_ns}
        lost = sure(self.bans) - self._banned(server)
        if lost:
            find(f"{len(lost)} bans are lost, such as {sorted(lost)[0]}")
        told = {event["data"]["name"] for event in events if event["kind"] == "stream.forbidden"}
        lost = sure(self.bans) - told
        if lost:
            find(f"{len(lost)} bans have no event, such as {sorted(lost)[0]}")
        tokens = [token["name"] for token in server.get("tokens")["list"]]
        if len(set(tokens)) != len(tokens):
            find("a token is there twice")
        lost = sure(self.tokens) - set(tokens)
        if lost:
            find(f"{len(lost)} tokens are lost, such as {sorted(lost)[0]}")

    @staticmethod
    def _banned(server):
        return {stream["name"] for stream in server.pages("streams/forbidden?limit=1000")}


def hash_of(*words):
    """The same in every run, unlike hash()."""
    value = 2166136261
    for byte in "/".join(words).encode():
        value = (value ^ byte) * 16777619 % (1 << 32)
    # The low bits of the product know the last byte only.
    return value >> 8


def event_problems(events):
    """The faults of a list of all events, in which ids must grow and each room's numbers must have no gap."""
    last, numbers = 0, {}
    for event in events:
        if event["id"] <= last:
            yield f"event {event['id']} follows {last}"
        last = event["id"]
        room = event["roomId"]
        if room is None:
            continue
        expected = numbers.get(room, 0) + 1
        if event["number"] != expected:
            yield f"room {room}: event {event['id']} has number {event['number']}, expected {expected}"
        numbers[room] = event["number"]
