"""Faults between clients and server, so that it shows that the check finds such: a proxy that passes everything on but for one answer."""

import json
import socket
import threading
import time

from wire import Answer, Connection, Lost, NotSent


class Fault:
    """A proxy in the server's place. Passes on what it gets; a subclass changes something."""

    def __init__(self):
        self.was_put = False
        self.lock = threading.Lock()
        self.listener = None
        self.server = None

    def attach(self, server):
        """From now on clients of the server come here. For servers that are not killed: its port is that of the run."""
        self.server = server
        self.port = server.port
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        server.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        if self.listener:
            self.listener.close()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        buffer = b""
        upstream = None
        try:
            while True:
                while (end := buffer.find(b"\r\n\r\n")) < 0:
                    data = client.recv(65_536)
                    if not data:
                        return
                    buffer += data
                lines = buffer[:end].decode().split("\r\n")
                method, path, _ = lines[0].split(" ")
                headers = dict(line.split(": ", 1) for line in lines[1:])
                need = end + 4 + int(headers.get("Content-Length", 0))
                while len(buffer) < need:
                    buffer += client.recv(65_536)
                body, buffer = buffer[end + 4 : need], buffer[need:]
                if "Upgrade" in headers:
                    return self._splice(client, lines, headers)
                if upstream is None:
                    upstream = Connection(self.port, headers.pop("Authorization").removeprefix("Bearer "))
                kept = {name: value for name, value in headers.items() if name in ("If-Match", "If-None-Match", "Idempotency-Key")}
                request = json.loads(body) if body else None
                answer = self.answer(method, path, request, lambda: upstream.ask(method, path, request, kept), upstream)
                text = json.dumps(answer.body).encode() if answer.body is not None else b""
                head = f"HTTP/1.1 {answer.status} X\r\nContent-Type: application/json\r\nContent-Length: {len(text)}\r\n"
                if "idempotency-replayed" in answer.headers:
                    head += "Idempotency-Replayed: true\r\n"
                client.sendall(head.encode() + b"\r\n" + text)
                self.sent(method, path, answer)
        except (OSError, Lost, NotSent):
            pass
        finally:
            client.close()
            if upstream:
                upstream.close()

    def _splice(self, client, lines, headers):
        """A WebSocket goes through as it is."""
        upstream = socket.create_connection(("127.0.0.1", self.port))
        host = f"Host: {headers['Host']}"
        head = "\r\n".join(f"Host: 127.0.0.1:{self.port}" if line == host else line for line in lines)
        upstream.sendall(head.encode() + b"\r\n\r\n")

        def back():
            try:
                while data := client.recv(65_536):
                    upstream.sendall(data)
            except OSError:
                pass
            finally:
                upstream.close()

        threading.Thread(target=back, daemon=True).start()
        try:
            while data := upstream.recv(65_536):
                client.sendall(data)
        except OSError:
            pass

    def answer(self, method, path, body, ask, upstream):
        """The answer that the client gets; `ask` gets the server's."""
        return ask()

    def sent(self, method, path, answer):
        """The client has this answer now."""


class LostEvent(Fault):
    """One event is in no page of the feed."""

    def __init__(self):
        super().__init__()
        self.gone = None

    def answer(self, method, path, body, ask, upstream):
        answer = ask()
        data = (answer.body or {}).get("data")
        if "/events?" not in path or answer.status != 200:
            return answer
        with self.lock:
            ids = [event["id"] for event in data["list"]]
            if self.gone is None and len(ids) > 2:
                self.gone = ids[1]
            if self.gone in ids:
                self.was_put = True
                data["list"] = [event for event in data["list"] if event["id"] != self.gone]
                data["last"] = data["list"][-1]["id"] if data["list"] else int(path.split("after=")[1].split("&")[0])
        return answer


class DoubledEvent(Fault):
    """One page of the feed begins with the end of the page before."""

    def __init__(self):
        super().__init__()
        self.before = None

    def answer(self, method, path, body, ask, upstream):
        answer = ask()
        data = (answer.body or {}).get("data")
        if not path.startswith("/api/v1/events?after") or answer.status != 200 or "limit=7" not in path or not data["list"]:
            return answer
        with self.lock:
            if self.before and not self.was_put:
                self.was_put = True
                data["list"].insert(0, self.before)
            self.before = data["list"][-1]
        return answer


class StaleRead(Fault):
    """Some looks at a room get an answer from before a change that was answered a while ago."""

    # One of them may be a look whose client does not wait for the answer.
    MOST = 5

    def __init__(self):
        super().__init__()
        self.old, self.changed = {}, {}
        self.put = 0

    def answer(self, method, path, body, ask, upstream):
        room = path.removeprefix("/api/v1/rooms/")
        if method != "GET" or "/" in room or "?" in room:
            return ask()
        with self.lock:
            old, changed = self.old.get(room), self.changed.get(room)
            # Long enough for the writer to have its answer.
            if old and changed and time.monotonic() - changed > 0.3 and self.put < self.MOST:
                self.put += 1
                self.was_put = True
                return old
        answer = ask()
        if answer.status == 200:
            with self.lock:
                # An answer that is known to be old stays.
                if room not in self.changed:
                    self.old[room] = answer
        return answer

    def sent(self, method, path, answer):
        parts = path.split("/")
        if method == "PATCH" and answer.status == 200 and len(parts) > 4:
            data = answer.body["data"]
            with self.lock:
                old = self.old.get(parts[4])
                if old and old.body["data"]["version"] != data["version"]:
                    self.changed.setdefault(parts[4], time.monotonic())


class LostUpdate(Fault):
    """Likes are answered and not counted, now and then."""

    def __init__(self):
        super().__init__()
        self.seen = 0

    def answer(self, method, path, body, ask, upstream):
        if not path.endswith("/like") or not body.get("count"):
            return ask()
        with self.lock:
            self.seen += 1
            is_due = self.seen % 4 == 0
        if not is_due:
            return ask()
        room = upstream.ask("GET", path.removesuffix("/like"))
        if room.status != 200 or room.body["data"]["state"] in ("closed", "expired") or body["count"] > 100:
            return ask()
        self.was_put = True
        room.body["data"]["likes"] += body["count"]
        return Answer(200, {}, room.body)


FAULTS = {"lost-event": LostEvent, "doubled-event": DoubledEvent, "stale-read": StaleRead, "lost-update": LostUpdate}
IN_CI = ("lost-event", "doubled-event", "stale-read", "lost-update")
