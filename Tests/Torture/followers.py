"""A reader of the event feed (`/events`), which goes on with `after=` where its connection broke off."""

import base64
import json
import os
import socket
import struct
import threading


class Follower(threading.Thread):
    """One node's feed, from the first event on. Owned by the round."""

    def __init__(self, node):
        super().__init__(daemon=True)
        self.node = node
        # Ids as they came, and what each was of: (kind, room, number in the room).
        self.ids = []
        self.contents = []
        self.problems = []
        self.joins = 0
        self._ended = threading.Event()

    def run(self):
        while not self._ended.is_set():
            try:
                self._follow()
            except (OSError, EOFError):
                pass
            self._ended.wait(0.2)

    def ask_to_end(self):
        self._ended.set()

    def _follow(self):
        server = self.node.server
        if server is None:
            return
        with socket.create_connection((server.host, server.http_port), timeout=5) as connection:
            # Pings come each 15 s.
            connection.settimeout(40)
            reader = connection.makefile("rb")
            after = self.ids[-1] if self.ids else 0
            key = base64.b64encode(os.urandom(16)).decode()
            connection.sendall(
                f"GET /events?after={after} HTTP/1.1\r\nHost: {server.host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\nAuthorization: Bearer {server.token}\r\n\r\n".encode())
            if b" 101 " not in reader.readline():
                return
            while reader.readline() not in (b"\r\n", b""):
                pass
            self.joins += 1
            while not self._ended.is_set():
                self._read(connection, reader)

    def _read(self, connection, reader):
        # RFC 6455 §5.2; the server sends unmasked frames, and no fragments.
        head = self._exactly(reader, 2)
        size = head[1] & 0x7F
        if size == 126:
            size = struct.unpack(">H", self._exactly(reader, 2))[0]
        elif size == 127:
            size = struct.unpack(">Q", self._exactly(reader, 8))[0]
        body = self._exactly(reader, size)
        kind = head[0] & 0x0F
        if kind == 9:
            connection.sendall(bytes([0x8A, 0x80 | len(body)]) + bytes(4) + body)
        elif kind == 8:
            raise EOFError
        elif kind == 1:
            self._message(json.loads(body))

    @staticmethod
    def _exactly(reader, count):
        data = reader.read(count)
        if len(data) < count:
            raise EOFError
        return data

    def _message(self, message):
        kind = message.get("type")
        if kind == "gap":
            self.problems.append(f"was told of a gap: {message}")
        elif kind == "event":
            event = message.get("event", message)
            last = self.ids[-1] if self.ids else 0
            if event["id"] != last + 1 and len(self.problems) < 5:
                self.problems.append(f"got event {event['id']} after {last}, in its connection {self.joins}")
            self.contents.append((event["kind"], event["roomId"], event["number"]))
            self.ids.append(event["id"])
