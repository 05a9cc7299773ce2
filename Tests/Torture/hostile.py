"""Hostile clients, in a process of their own: hostile.py RTMP_PORT HTTP_PORT SECONDS CLIENTS SEED [KIND…].

Each kind has so many clients at a time, on one thread by poll(); who is turned away comes again. Prints a JSON object of what each did.
"""

import contextlib
import errno
import json
import os
import random
import selectors
import socket
import struct
import sys
import time

HANDSHAKE = b"\x03" + bytes(8) + bytes(1528)


def _chunk(kind, length, payload, stream=0, chunk_stream=3):
    """RTMP 1.0 §5.3.1: a message's first chunk, with whatever length it claims."""
    return bytes([chunk_stream]) + b"\0\0\0" + struct.pack(">I", length)[1:] + bytes([kind]) + struct.pack("<I", stream) + payload


def _hoard(random_):
    """Connections that never say enough."""
    return random_.choice((b"", b"\x03", HANDSHAKE[:700], HANDSHAKE)), 0, b"", True


def _half(random_):
    """Messages that claim much and of which half comes."""
    parts = [_chunk(random_.choice((8, 9, 17, 18, 20)), random_.choice((65_536, 1 << 20, (1 << 24) - 1)), bytes(128), 0, 3 + number) for number in range(40)]
    return HANDSHAKE + bytes(1536) + b"".join(parts), 0, b"", True


def _garbage(random_):
    return random_.choice((b"", HANDSHAKE + bytes(1536))) + random_.randbytes(20_000), 2_000, None, True


def _slow_body(random_):
    """Twenty kilobytes a second of a body, and no end."""
    head = b"POST /api/v1/rooms HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 60000\r\n\r\n"
    return head, 2_000, b" " * 2_000, False


def _slow_reader(random_):
    """Asks for media and reads none of it."""
    return b"GET /live/%s.flv HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" % random_.choice((b"l-0", b"honest", b"cam1")), 0, b"", False


def _flood(random_):
    """Requests one behind the other, whose answers nobody reads."""
    path = random_.choice((b"/live/none.m3u8", b"/api/v1/rooms", b"/healthz", b"/" + b"a" * 3_000, b"/live/honest.mp4"))
    return (b"GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" % path) * 50, 0, b"", False


KINDS = {"hoard": _hoard, "half": _half, "garbage": _garbage, "body": _slow_body, "reader": _slow_reader, "flood": _flood}


class Client:
    """One connection. `more` is what goes out each 100 ms behind the first bytes; None: random bytes."""

    def __init__(self, kind, random_, ports):
        self.kind, self.random = kind, random_
        first, self.pace, self.more, is_rtmp = KINDS[kind](random_)
        self.out = first
        self.due = 0.0
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8_192)
        self.socket.setblocking(False)
        code = self.socket.connect_ex(("127.0.0.1", ports[0] if is_rtmp else ports[1]))
        if code not in (0, errno.EINPROGRESS):
            self.socket.close()
            raise OSError(code, os.strerror(code))
        self.end = time.monotonic() + random_.uniform(5, 60)

    def push(self, now):
        """Writes what is due. Returns the bytes written; raises OSError when it was turned away."""
        if not self.out and self.pace and now >= self.due:
            self.due = now + 0.1
            self.out = self.more if self.more is not None else self.random.randbytes(self.pace)
        if not self.out:
            return 0
        count = self.socket.send(self.out)
        self.out = self.out[count:]
        return count


class Attack:
    def __init__(self, ports, count, seed, kinds):
        self.ports, self.count, self.kinds = ports, count, kinds
        self.random = random.Random(seed)
        self.clients = []
        self.done = {kind: {"connections": 0, "turnedAway": 0, "bytes": 0} for kind in kinds}

    def run(self, seconds):
        end = time.monotonic() + seconds
        # A client that is turned away does not come back at once: bounded load.
        budget_at, budget = 0.0, {}
        with selectors.DefaultSelector() as selector:
            while (now := time.monotonic()) < end:
                if now >= budget_at:
                    budget_at, budget = now + 0.1, {kind: 12 for kind in self.kinds}
                by_kind = {kind: 0 for kind in self.kinds}
                for client in self.clients:
                    by_kind[client.kind] += 1
                for kind in self.kinds:
                    while by_kind[kind] < self.count and budget[kind] > 0:
                        by_kind[kind] += 1
                        budget[kind] -= 1
                        self._open(kind, selector)
                for key, _ in selector.select(0.05):
                    self._turn(key.data, selector, now)
                for client in list(self.clients):
                    if now > client.end:
                        self._close(client, selector)
                time.sleep(0.02)
        for client in list(self.clients):
            client.socket.close()
        return self.done

    def _open(self, kind, selector):
        try:
            client = Client(kind, self.random, self.ports)
        except OSError:
            self.done[kind]["turnedAway"] += 1
            return
        self.done[kind]["connections"] += 1
        self.clients.append(client)
        # Slow readers do not even look.
        events = selectors.EVENT_WRITE if kind in ("reader", "flood") else selectors.EVENT_WRITE | selectors.EVENT_READ
        selector.register(client.socket, events, client)

    def _turn(self, client, selector, now):
        try:
            self.done[client.kind]["bytes"] += client.push(now)
            if client.kind not in ("reader", "flood"):
                with contextlib.suppress(BlockingIOError):
                    if client.socket.recv(4_096) == b"":
                        raise ConnectionResetError
        except BlockingIOError:
            pass
        except OSError:
            self.done[client.kind]["turnedAway"] += 1
            self._close(client, selector)

    def _close(self, client, selector):
        selector.unregister(client.socket)
        client.socket.close()
        self.clients.remove(client)


def main():
    rtmp, http, seconds, count, seed = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5])
    print(json.dumps(Attack((rtmp, http), count, seed, sys.argv[6:] or list(KINDS)).run(seconds)))


if __name__ == "__main__":
    main()
