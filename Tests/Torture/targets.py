"""Webhooks of all sorts. Each lies, or fails in its way, until it is told to be good; then it takes what comes."""

import collections
import contextlib
import json
import random
import socket
import struct
import threading


WAYS = ("good", "slow", "down", "empty", "short", "long", "endless", "redirect", "fails", "resets", "silent", "garbage", "mute")


class Target:
    """One target, on a port of its own. Threads; owned by the kind that started it."""

    def __init__(self, way, seed, host="127.0.0.1"):
        self.way, self.host = way, host
        self.random = random.Random(seed)
        self.is_good = way == "good"
        # Bodies as they came, each with the time and whether the answer was a whole 2xx.
        self.requests = []
        self.malformed = []
        self._lock = threading.Lock()
        self._closing = threading.Event()
        # Bound and not listening, it refuses, and nobody else takes its port.
        self.listener = socket.socket()
        self.listener.bind((host, 0))
        self.port = self.listener.getsockname()[1]
        self.url = f"http://{host}:{self.port}/{way}"
        if way != "down":
            self._serve()

    def _serve(self):
        self.listener.listen(128)
        threading.Thread(target=self._accept, daemon=True).start()

    def recover(self):
        """From now on it is good."""
        self.is_good = True
        if self.way == "down":
            self._serve()

    def close(self):
        self._closing.set()
        with contextlib.suppress(OSError):
            # Wakes the thread that accepts.
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def accepted(self):
        """The events whose delivery it has confirmed, in order, again and again where they came again."""
        with self._lock:
            return [event for event, is_taken in self.requests if is_taken]

    def seen(self):
        with self._lock:
            return [event for event, _ in self.requests]

    def _accept(self):
        while not self._closing.is_set():
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, connection):
        with connection, contextlib.suppress(OSError, EOFError):
            connection.settimeout(30)
            reader = connection.makefile("rb")
            while not self._closing.is_set():
                body = self._request(reader)
                if body is None or not self._answer(connection, body):
                    return

    def _request(self, reader):
        """The body of the next request; None at the end."""
        line = reader.readline(4_096)
        if not line:
            return None
        length = 0
        if not line.startswith(b"POST /") or not line.rstrip().endswith(b"HTTP/1.1"):
            self.malformed.append(line[:80])
        while (header := reader.readline(8_192)) not in (b"\r\n", b""):
            name, _, value = header.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        body = reader.read(length)
        return body if len(body) == length else None

    def _note(self, body, is_taken):
        try:
            event = json.loads(body)
        except ValueError:
            self.malformed.append(body[:80])
            return
        with self._lock:
            self.requests.append((event, is_taken))

    def _answer(self, connection, body):
        """Whether the connection goes on."""
        if self.is_good or (self.way == "mute" and self.random.random() < 0.5):
            # Before the answer: the server may go on as soon as it has it.
            self._note(body, True)
            connection.sendall(b"HTTP/1.1 204 No Content\r\n\r\n" if self.random.random() < 0.5 else b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            return True
        if self.way == "slow":
            self._closing.wait(self.random.uniform(0.5, 1.5))
            self._note(body, True)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            return True
        self._note(body, False)
        return self._misbehave(connection)

    def _misbehave(self, connection):
        way = self.way
        if way == "empty":
            # The head promises a body; nothing comes, and nothing ends.
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n")
            self._closing.wait(5)
        elif way == "short":
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nok")
        elif way == "long":
            connection.sendall(b"HTTP/1.1 500 No\r\nContent-Length: 2\r\n\r\nok, and much more than that")
        elif way == "endless":
            connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            # More than anybody should read; the server hangs up long before.
            for _ in range(2_000):
                connection.sendall(b"1000\r\n" + bytes(4_096) + b"\r\n")
        elif way == "redirect":
            connection.sendall(b"HTTP/1.1 302 Found\r\nLocation: http://%s:%d/elsewhere\r\nContent-Length: 0\r\n\r\n" % (self.host.encode(), self.port))
            return True
        elif way == "fails":
            connection.sendall(b"HTTP/1.1 %d No\r\nContent-Length: 0\r\n\r\n" % self.random.choice((400, 404, 429, 500, 503)))
            return True
        elif way == "resets":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        elif way == "silent":
            self._closing.wait(5)
        elif way == "garbage":
            connection.sendall(bytes(self.random.randrange(256) for _ in range(500)))
        return False


def judge(context, target, accepted, events, by_id):
    """Every event once at least, and a room's in order."""
    got = {event["id"] for event in accepted}
    lost = [event["id"] for event in events if event["id"] not in got]
    context.expect(not lost, f"target {target.way}: {len(lost)} of {len(events)} events never came, such as {lost[:3]}")
    context.expect(not target.malformed, f"target {target.way}: not as documented: {target.malformed[:2]}")
    last, wrong = collections.defaultdict(int), []
    for event in accepted:
        if event["id"] not in by_id:
            # The event of a change that was not answered, delivered all the same.
            context.find(f"target {target.way} was told of event {event['id']}, which is not in the store")
            continue
        others = {name for name in ("kind", "roomId", "number", "at", "data") if event[name] != by_id[event["id"]][name]}
        if others:
            wrong.append((event["id"], others))
        room = event["roomId"]
        if room is None:
            continue
        # Events may be delivered again, but never a later one before an earlier one.
        context.expect(event["number"] <= last[room] + 1, f"target {target.way}: room {room} got number {event['number']} after {last[room]}")
        last[room] = max(last[room], event["number"])
    context.expect(not wrong, f"target {target.way}: {len(wrong)} events have another {wrong[:3]}")
