"""Readers of the event feed, that go on where they were with `after=`, whatever becomes of the server."""

import base64
import json
import os
import random
import socket
import threading
import time

from wire import Lost, NotSent


def read_page(connection, run, recorder, reader, after, room, limit, is_chain, by_path=False):
    """One read, recorded. Returns its record; None when its answer was lost or there is no such room."""
    path = f"/api/v1/rooms/{room}/events?" if room and by_path else f"/api/v1/events?{f'roomId={room}&' if room else ''}"
    start = recorder.now()
    try:
        answer = connection.ask("GET", f"{path}after={after}&limit={limit}")
    except Lost:
        return None
    end = recorder.now()
    if answer.status == 404 and room:
        return None
    if answer.status != 200:
        raise ValueError(f"a read of the feed was answered {answer.status}: {answer.body}")
    data = answer.body["data"]
    return recorder.add(
        "feed", reader=reader, after=after, room=room, limit=limit, start=start, end=end, run=run, last=data["last"],
        isComplete=data["isComplete"], isChain=is_chain, events=[recorder.place(event) for event in data["list"]])  # fmt: skip


class Poller(threading.Thread):
    """Reads page after page. `limit`: short pages or long ones."""

    def __init__(self, name, server, recorder, limit, pause, seed, room=None):
        super().__init__(name=name, daemon=True)
        self.server, self.recorder, self.limit, self.pause, self.room = server, recorder, limit, pause, room
        self.random = random.Random(f"{seed}/{name}")
        self.after = 0
        self.ends = threading.Event()
        self.failure = None

    def run(self):
        try:
            while not self.ends.is_set():
                try:
                    connection, run = self.server.connect(seconds=5)
                except NotSent:
                    continue
                try:
                    self.read(connection, run)
                finally:
                    connection.close()
        except Exception as error:
            self.failure = error
            raise

    def read(self, connection, run):
        for _ in range(self.random.randint(20, 200)):
            if self.ends.is_set():
                return
            page = read_page(connection, run, self.recorder, self.name, self.after, self.room, self.limit, is_chain=True)
            if page is None:
                return
            self.after = page["last"]
            if page["isComplete"]:
                time.sleep(self.random.random() * 2 * self.pause)


def read_all(server, recorder):
    """Everything, from the beginning, when all is over."""
    connection, run = server.connect()
    after = 0
    try:
        while True:
            page = read_page(connection, run, recorder, "final", after, None, 1_000, is_chain=True)
            if page is None:
                raise ValueError("the server was lost at the end")
            after = page["last"]
            if page["isComplete"]:
                return
    finally:
        connection.close()


class Subscriber(threading.Thread):
    """Reads the WebSocket /events (RFC 6455), and comes back with `after=` where it broke off."""

    def __init__(self, name, server, recorder):
        super().__init__(name=name, daemon=True)
        self.server, self.recorder = server, recorder
        self.after = 0
        self.ends = threading.Event()
        self.failure = None

    def run(self):
        try:
            while not self.ends.is_set():
                try:
                    connection, run = self.server.connect(seconds=5)
                except NotSent:
                    continue
                try:
                    self.subscribe(connection, run)
                except (Lost, OSError):
                    pass
                finally:
                    connection.close()
        except Exception as error:
            self.failure = error
            raise

    def subscribe(self, connection, run):
        key = base64.b64encode(os.urandom(16)).decode()
        headers = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": key}
        start = self.recorder.now()
        connection.send("GET", f"/events?after={self.after}", None, headers)
        buffer = b""
        while b"\r\n\r\n" not in buffer:
            buffer += connection._more()
        head, _, buffer = buffer.partition(b"\r\n\r\n")
        if b" 101 " not in head.split(b"\r\n")[0] + b" ":
            raise ValueError(f"the WebSocket was refused: {head[:200]!r}")
        connection.socket.settimeout(0.2)
        places, after = [], self.after
        try:
            while not self.ends.is_set():
                frame, buffer = take_frame(buffer)
                if frame is None:
                    try:
                        buffer += connection._more()
                    except socket.timeout:
                        continue
                    continue
                kind, data = frame
                if kind == 0x9:
                    connection.socket.sendall(bytes([0x8A, 0x80 | len(data), 0, 0, 0, 0]) + data)
                elif kind == 0x8:
                    return
                elif kind == 0x1:
                    self.hear(json.loads(data), places)
        finally:
            self.recorder.add(
                "feed", reader=self.name, after=after, room=None, limit=None, start=start, end=self.recorder.now(), run=run, last=self.after,
                isComplete=False, isChain=True, isStream=True, events=places)  # fmt: skip

    def hear(self, message, places):
        kind = message.pop("type")
        if kind == "event":
            places.append(self.recorder.place(message))
            self.after = message["id"]
        elif kind == "gap":
            raise ValueError(f"the feed says that events are gone: {message}")


def take_frame(buffer):
    """The first frame of a server, which is never masked, and what follows it; None when it is not all there."""
    if len(buffer) < 2:
        return None, buffer
    kind, length, place = buffer[0] & 0x0F, buffer[1] & 0x7F, 2
    if length == 126:
        length, place = int.from_bytes(buffer[2:4], "big"), 4
    elif length == 127:
        length, place = int.from_bytes(buffer[2:10], "big"), 10
    if len(buffer) < place or len(buffer) < place + length:
        return None, buffer
    return (kind, buffer[place : place + length]), buffer[place + length :]
