"""The clients: each acts on few rooms, so that they are in one another's way, and records what it asked and was told."""

import random
import threading
import time
from collections import deque

from history import compact, digest, instant, room_answer
from readers import read_page
from wire import Lost, NotSent

USERS = ("ann", "ben", "cem", "dora")
WEIGHTS = {
    "create": 13, "get": 16, "patch": 13, "renew": 6, "like": 8, "close": 4, "forbid": 6, "resume": 5, "expire": 3, "delete": 2, "join": 9,
    "leave": 3, "kick": 4, "members": 4, "list": 3, "events": 3, "ban": 3, "unban": 3, "bans": 2, "invalid": 2, "repeat": 6,
    "token.create": 2, "token.revoke": 2, "token.use": 4, "token.list": 1,
}  # fmt: skip
POSTS = {"ban", "unban", "renew", "close", "expire", "forbid", "resume", "like", "join", "leave", "kick"}
CONDITIONAL = {"patch", "renew", "close", "expire", "forbid", "resume", "delete"}
LOOKS = {"create", "get", "members", "events", "invalid"}
ENDS = {"close", "expire", "delete", "forbid", "ban"}


class Shared:
    """State that all clients share. Any thread."""

    def __init__(self, server, recorder, rooms, operations, thinking):
        self.server = server
        self.recorder = recorder
        self.rooms = rooms
        # Rooms that are mostly left to their deadlines.
        self.calm = set(rooms[-2:])
        self.thinking = thinking
        self.operations = operations
        self._lock = threading.Lock()
        self.done = 0
        self.failure = None
        # Requests with a key that others may repeat.
        self.keyed = deque(maxlen=12)
        # (name, id, secret) of tokens, revoked ones too.
        self.tokens = deque(maxlen=12)

    def take(self):
        """One of the operations that are left; False when there is none."""
        with self._lock:
            if self.done >= self.operations or self.failure:
                return False
            self.done += 1
            return True


class Request:
    """A call as it is asked: again, it is the same."""

    def __init__(self, op, method, path, body=None, room=None, asked=None, if_match=None, key=None):
        self.op, self.method, self.path, self.body, self.room = op, method, path, body, room
        self.asked, self.if_match, self.key = asked or {}, if_match, key

    def headers(self):
        found = {}
        if self.if_match:
            found["If-Match"] = f'"{self.if_match}"'
        if self.key:
            found["Idempotency-Key"] = self.key
        return found


class Actor(threading.Thread):
    """One client with a connection of its own."""

    def __init__(self, number, seed, shared):
        super().__init__(name=f"client-{number}", daemon=True)
        self.number = number
        self.random = random.Random(f"{seed}/{number}")
        self.shared = shared
        self.connection = None
        self.server_run = None
        self.made = 0
        # The newest version that this client has seen of each room, and the rooms that it thinks are there.
        self.versions = {}
        self.there = set()

    def run(self):
        try:
            while self.shared.take():
                self.act()
                if self.shared.thinking:
                    time.sleep(self.random.random() * 2 * self.shared.thinking)
        except Exception as error:  # whatever it is, the run is worth nothing
            self.shared.failure = error
            raise
        finally:
            self.drop()

    def drop(self):
        if self.connection:
            self.connection.close()
        self.connection = None

    # MARK: Calls

    def call(self, request, token=None, source="127.0.0.1", other=False, aborts=False):
        """Carries a request out, records it, and returns the record."""
        recorder = self.shared.recorder
        own = None
        if token or aborts or other:
            own, run = self.shared.server.connect(token, source)
            connection = own
        else:
            if self.connection is None or self.server_run != self.shared.server.run:
                self.drop()
                self.connection, self.server_run = self.shared.server.connect()
            connection, run = self.connection, self.server_run
        entry = {
            "client": self.number, "op": request.op, "room": request.room, "asked": request.asked, "ifMatch": request.if_match,
            "key": request.key, "run": run, "status": None, "answer": None, "error": None, "end": None,
        }  # fmt: skip
        if other:
            entry["other"] = True
        entry["start"] = recorder.now()
        try:
            connection.send(request.method, request.path, request.body, request.headers())
            if aborts:
                # Some are gone before they are read, some after.
                time.sleep(self.random.choice((0, 0, 0.002, 0.01)))
            else:
                self.fill(entry, connection.receive())
        except Lost:
            if own is None:
                self.drop()
        finally:
            if own:
                own.close()
        recorder.add("call", **entry)
        return entry

    def fill(self, entry, answer):
        entry["end"] = self.shared.recorder.now()
        entry["status"] = answer.status
        entry["replayed"] = "idempotency-replayed" in answer.headers
        body = answer.body or {}
        if "error" in body:
            entry["error"] = body["error"]
            if entry["error"]["type"] == "internal" or answer.status == 429:
                raise ValueError(f"{entry['op']} was answered {answer.status}: {body}")
            return
        data = body.get("data")
        entry["answer"] = self.shown(entry, data)
        if entry["key"]:
            entry["digest"] = digest({**data, "secret": None} if isinstance(data, dict) else data)

    def shown(self, entry, data):
        """The parts of an answer that the history keeps."""
        op = entry["op"]
        if op == "members":
            return {"total": data["total"], "members": [[member["userId"], member["nick"]] for member in data["list"]]}
        if op == "ban":
            return ban_answer(data)
        if op == "bans":
            bans = {ban["name"]: ban_answer(ban) for ban in data["list"] if ban["app"] == "live"}
            return {"total": data["total"], "count": len(data["list"]), "next": data["next"], "rooms": bans}
        if op == "list":
            rooms = {room["roomId"]: room_answer(room) for room in data["list"]}
            return {"total": data["total"], "count": len(data["list"]), "next": data["next"], "rooms": rooms}
        if op == "token.create":
            return {"tokenId": data["tokenId"], "secret": data["secret"] is not None, "isRevoked": data["revokedAt"] is not None}
        if op == "token.list":
            # Each server has one that its first start made.
            return {"tokens": [[t["name"], t["revokedAt"] is not None] for t in data["list"] if t["name"] != "first"]}
        if isinstance(data, dict) and "version" in data:
            return room_answer(data)
        return None

    # MARK: Choices

    def act(self):
        op = self.random.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        if op.startswith("token."):
            return self.act_on_tokens(op)
        if op == "repeat":
            return self.repeat()
        if op == "list":
            return self.list_rooms()
        if op == "bans":
            return self.call(Request(op, "GET", "/api/v1/streams/forbidden?limit=1000"))
        room = self.random.choice(self.shared.rooms)
        if op not in LOOKS and room not in self.there and self.random.random() < 0.35:
            op = "create"
        if op in ENDS and room in self.shared.calm and self.random.random() < 0.8:
            op = "get"
        if op == "events":
            return self.room_events(room)
        self.look(self.once(self.request(op, room)), room)

    def look(self, entry, room):
        """Notes what the answer says about the room."""
        answer = entry["answer"]
        if answer and "version" in answer:
            self.versions[room] = answer["version"]
        if entry["status"] == 404 and (entry["error"] or {}).get("field") == "roomId" or (answer or {}).get("state") in ("closed", "expired"):
            self.there.discard(room)
        elif entry["status"] is not None and entry["status"] < 400:
            self.there.add(room)

    def once(self, request):
        """The call. One with a key whose answer was lost is repeated until there is an answer; some give up early."""
        aborts = self.random.random() < 0.02
        entry = self.call(request, aborts=aborts)
        if not request.key:
            return entry
        if self.random.random() < 0.5:
            self.shared.keyed.append(request)
        while entry["status"] is None or (entry["error"] or {}).get("rule") == "in_progress":
            if self.random.random() < 0.1 or self.shared.failure:
                return entry
            time.sleep(0.002)
            entry = self.call(request)
        if entry["status"] < 400 and request.op in ("create", "like") and self.random.random() < 0.1:
            # The same key for another request: refused, and without an effect.
            body = {**request.body, **({"title": "another"} if request.op == "create" else {"count": 99})}
            self.call(Request(request.op, "POST", request.path, body, request.room, request.asked, None, request.key), other=True)
        return entry

    def repeat(self):
        """Another client's request with its key, perhaps while that is being carried out."""
        try:
            request = self.random.choice(self.shared.keyed)
        except IndexError:
            return
        self.call(request)

    def key(self):
        self.made += 1
        return f"key-{self.number}-{self.made}" if self.random.random() < 0.4 else None

    def request(self, op, room):
        if op == "create":
            return self.creation(room)
        if op == "invalid":
            return self.invalid(room)
        asked, body, path, method = {}, None, f"/api/v1/rooms/{room}", "GET"
        choose = self.random
        if op == "patch":
            method, body, asked = "PATCH", *self.changes()
        elif op == "members":
            path += "/members?limit=1000"
        elif op == "delete":
            method = "DELETE"
        elif op in POSTS:
            method = "POST"
            user = choose.choice(USERS)
            if op in ("join", "leave"):
                nick = f"n{choose.randrange(1000)}"
                asked = {"user": user, "nick": nick} if op == "join" else {"user": user}
                body = {"userId": user, "nick": nick} if op == "join" else {"userId": user}
                path += f"/{op}"
            elif op == "kick":
                seconds = choose.choice((0, 0.05, 0.3, 1))
                asked, body = {"user": user, "ms": round(seconds * 1000)}, {"seconds": seconds}
                path += f"/members/{user}/kick"
            elif op in ("ban", "unban"):
                path = f"/api/v1/streams/live/{room}/{'forbid' if op == 'ban' else 'resume'}"
                body, asked = self.action(op)
            else:
                path += f"/{op}"
                body, asked = self.action(op)
        if_match = None
        if op in CONDITIONAL and choose.random() < 0.4:
            if_match = self.versions.get(room)
        return Request(op, method, path, body, room, asked, if_match, self.key() if method == "POST" else None)

    def action(self, op):
        choose = self.random
        if op == "like":
            count = choose.randint(1, 5)
            return {"count": count}, {"count": count}
        if op == "renew" and choose.random() < 0.5:
            seconds = choose.choice((1, 1.5, 2))
            return {"seconds": seconds}, {"ms": round(seconds * 1000)}
        if op in ("forbid", "ban"):
            reason = f"why {choose.randrange(1000)}"
            if choose.random() < 0.5:
                seconds = choose.choice((1, 1.2, 60))
                return {"seconds": seconds, "reason": reason}, {"ms": round(seconds * 1000), "reason": reason}
            until = round(self.shared.recorder.now()) + choose.choice((400, 800, 1_500))
            return {"forbiddenUntil": instant_text(until), "reason": reason}, {"until": until, "reason": reason}
        return {}, {}

    def changes(self):
        choose = self.random
        body, asked = {}, {}
        if choose.random() < 0.7:
            body["title"] = asked["title"] = f"t{choose.randrange(100_000)}"
        if choose.random() < 0.3:
            body["custom"] = {"n": choose.randrange(100_000), "deep": [1.5, None, "x"]}
            asked["custom"] = compact(body["custom"])
        if choose.random() < 0.3:
            body["isPublic"] = asked["isPublic"] = choose.random() < 0.5
        if choose.random() < 0.2:
            seconds = choose.choice((1, 2, 30))
            body["policy"], asked["neverStarted"] = {"neverStarted": seconds}, round(seconds * 1000)
        return body, asked

    def creation(self, room):
        choose = self.random
        never, retention = choose.choice((1, 1.2, 2, 300)), choose.choice((0, 0.1, 0.3, 1.5))
        title = f"t{choose.randrange(100_000)}"
        body = {"roomId": room, "title": title, "policy": {"neverStarted": never, "retention": retention}}
        asked = {"title": title, "neverStarted": round(never * 1000), "retention": round(retention * 1000)}
        if choose.random() < 0.3:
            body["custom"] = {"n": choose.randrange(100_000)}
            asked["custom"] = compact(body["custom"])
        return Request("create", "POST", "/api/v1/rooms", body, room, asked, None, self.key())

    def invalid(self, room):
        """Refused for what it asks, whatever the room's state: it must have no effect."""
        path, of = f"/api/v1/rooms/{room}", self.random.choice(("title", "policy", "count", "user", "until"))
        op, method, path, body = {
            "title": ("patch", "PATCH", path, {"title": "x" * 2_000}),
            "policy": ("create", "POST", "/api/v1/rooms", {"roomId": room, "policy": {"grace": -1}}),
            "count": ("like", "POST", f"{path}/like", {"count": 101}),
            "user": ("join", "POST", f"{path}/join", {"userId": "not an id"}),
            "until": ("forbid", "POST", f"{path}/forbid", {"forbiddenUntil": "2020-01-01T00:00:00Z"}),
        }[of]
        return Request(op, method, path, body, room, {"invalid": of}, None, self.key() if method == "POST" else None)

    def list_rooms(self):
        states = self.random.choice(([], ["created"], ["forbidden"], ["expired", "closed"], ["created", "forbidden"]))
        query = f"&state={','.join(states)}" if states else ""
        self.call(Request("list", "GET", f"/api/v1/rooms?pageSize=200&sort=id{query}", asked={"states": states}))

    def room_events(self, room):
        self.drop()
        connection, run = self.shared.server.connect()
        try:
            after = max(0, self.shared.recorder.told - self.random.choice((20, 100, 1_000)))
            read_page(connection, run, self.shared.recorder, f"client-{self.number}", after, room, 1_000, is_chain=False, by_path=True)
        finally:
            connection.close()

    # MARK: Tokens

    def act_on_tokens(self, op):
        if op == "token.list":
            return self.call(Request(op, "GET", "/api/v1/tokens"))
        if op == "token.create" or not self.shared.tokens:
            self.made += 1
            name = f"t{self.number}-{self.made}"
            role = self.random.choice(("ops", "backend"))
            request = Request("token.create", "POST", "/api/v1/tokens", {"name": name, "role": role}, asked={"name": name}, key=self.key())
            return self.make_token(request, name)
        name, identity, secret = self.random.choice(self.shared.tokens)
        if op == "token.revoke":
            return self.call(Request(op, "DELETE", f"/api/v1/tokens/{identity}", asked={"name": name}))
        # From an address of its own: too many wrong tokens from one, and it is held back.
        source = f"127.{self.random.randint(1, 250)}.{self.random.randint(0, 250)}.{self.random.randint(2, 250)}"
        return self.call(Request(op, "GET", "/api/v1/rooms?pageSize=1&state=live", asked={"name": name}), token=secret, source=source)

    def make_token(self, request, name):
        """The secret is in the first answer alone, and not in the record."""
        shown, secrets = self.shown, []

        def note(entry, data):
            if isinstance(data, dict) and data.get("secret"):
                secrets.append((data["tokenId"], data["secret"]))
            return shown(entry, data)

        self.shown = note
        try:
            entry = self.call(request)
            if entry["status"] is None and request.key:
                self.call(request)
        finally:
            self.shown = shown
        for identity, secret in secrets:
            self.shared.tokens.append((name, identity, secret))


def ban_answer(data):
    return {"until": instant(data["forbiddenUntil"]), "reason": data["reason"]}


def instant_text(milliseconds):
    seconds, rest = divmod(milliseconds, 1000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{rest:03}Z"
