"""Hostile clients, in a process of their own: hostile.py RTMP_PORT HTTP_PORT HTTPS_PORT SECONDS CLIENTS SEED [KIND…].

Each kind has so many clients at a time, on one thread by poll(); who is turned away comes again. Prints a JSON object of what each did.
"""

import contextlib
import errno
import json
import os
import random
import selectors
import socket
import ssl
import struct
import sys
import time

HANDSHAKE = b"\x03" + bytes(8) + bytes(1528)


def _chunk(kind, length, payload, stream=0, chunk_stream=3):
    """RTMP 1.0 §5.3.1: a message's first chunk, with whatever length it claims."""
    return bytes([chunk_stream]) + b"\0\0\0" + struct.pack(">I", length)[1:] + bytes([kind]) + struct.pack("<I", stream) + payload


def _hoard(random_):
    """Connections that never say enough."""
    return random_.choice((b"", b"\x03", HANDSHAKE[:700], HANDSHAKE)), 0, b"", "rtmp"


def _half(random_):
    """Messages that claim much and of which half comes."""
    parts = [_chunk(random_.choice((8, 9, 17, 18, 20)), random_.choice((65_536, 1 << 20, (1 << 24) - 1)), bytes(128), 0, 3 + number) for number in range(40)]
    return HANDSHAKE + bytes(1536) + b"".join(parts), 0, b"", "rtmp"


def _garbage(random_):
    return random_.choice((b"", HANDSHAKE + bytes(1536))) + random_.randbytes(20_000), 2_000, None, "rtmp"


def _slow_body(random_):
    """Twenty kilobytes a second of a body, and no end."""
    head = b"POST /api/v1/rooms HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 60000\r\n\r\n"
    return head, 2_000, b" " * 2_000, "http"


def _slow_reader(random_):
    """Asks for media and reads none of it."""
    return b"GET /live/%s.flv HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" % random_.choice((b"l-0", b"honest", b"cam1")), 0, b"", "http"


def _flood(random_):
    """Requests one behind the other, whose answers nobody reads."""
    path = random_.choice((b"/live/none.m3u8", b"/api/v1/rooms", b"/healthz", b"/" + b"a" * 3_000, b"/live/honest.mp4"))
    return (b"GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" % path) * 50, 0, b"", "http"


PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def _frame(kind, flags, stream, payload=b""):
    """RFC 9113 §4.1"""
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def _literal(name, value, indexed=False):
    """RFC 7541 §6.2.1, §6.2.2, for values of less than 16 KiB."""
    length = bytes([len(value)]) if len(value) < 127 else bytes([127, (len(value) - 127) & 127 | 128, (len(value) - 127) >> 7])
    return bytes([64 if indexed else 0, len(name)]) + name + length + value


def _head(method, path):
    return _literal(b":method", method) + _literal(b":scheme", b"https") + _literal(b":path", path) + _literal(b":authority", b"localhost")


def _heads(random_):
    """A hundred requests that do not end. Their heads are references to one field: 31 KiB each for a few bytes on the wire."""
    field = _literal(b"x-a", b"v" * 3_900, indexed=True)
    reference = b"\xbe" * random_.randint(1, 7)
    path = random_.choice((b"/channel/ticket", b"/api/v1/rooms", b"/push/live/x/heartbeat", b"/none"))
    blocks = [_head(b"POST", path) + (field if number == 0 else b"") + reference for number in range(100)]
    frames = [_frame(1, 4, 1 + 2 * number, block) for number, block in enumerate(blocks)]
    return PREFACE + _frame(4, 0, 0) + _frame(4, 1, 0) + b"".join(frames), 0, b"", "https"


def _answers(random_):
    """A hundred answers for whose bodies there is no window."""
    path = random_.choice((b"/api/v1/openapi.json", b"/", b"/live/honest.mp4", b"/live/honest.flv"))
    frames = [_frame(1, 5, 1 + 2 * number, _head(b"GET", path)) for number in range(100)]
    return PREFACE + _frame(4, 0, 0, struct.pack(">HI", 4, 0)) + _frame(4, 1, 0) + b"".join(frames), 0, b"", "https"


def _sockets(random_):
    """A WebSocket's message of which the last bytes do not come."""
    head = b"GET /mesh HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    head += b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    return head, 4_000, bytes([0x81, 0xFF]) + struct.pack(">Q", 65_000) + bytes(4) + b"a" * random_.randint(0, 64_000), "http"


def _streams(random_):
    """HTTP/2 at random: heads of any size, bodies that go on or not, windows, resets, priorities, settings, in any order."""
    out, next_ = [PREFACE + _frame(4, 0, 0, struct.pack(">HI", 4, random_.choice((0, 1, 65_535)))) + _frame(4, 1, 0)], 1
    paths = (b"/channel/ticket", b"/api/v1/rooms", b"/api/v1/openapi.json", b"/", b"/live/honest.mp4", b"/live/none.flv", b"/live/honest.m3u8", b"/none")
    for _ in range(random_.randint(1, 120)):
        stream = random_.choice((1, next_, max(1, next_ - 2)))
        match random_.randrange(8):
            case 0 | 1 | 2:
                block = _head(random_.choice((b"GET", b"POST", b"HEAD", b"PUT")), random_.choice(paths))
                for number in range(random_.randint(0, 6)):
                    block += _literal(b"x-%d" % number, random_.choice((b"abc", b"v" * 100, b"w" * 4_000)))
                out.append(_frame(1, random_.choice((4, 5)), next_, block[:16_384]))
                next_ += 2
            case 3 | 4:
                out.append(_frame(0, random_.choice((0, 0, 1)), stream, random_.randbytes(random_.choice((0, 1, 900, 16_384)))))
            case 5:
                out.append(_frame(8, 0, random_.choice((0, stream)), struct.pack(">I", random_.choice((1, 1_000, 1 << 20)))))
            case 6:
                out.append(_frame(3, 0, stream, struct.pack(">I", random_.randrange(14))))
            case _:
                out.append(random_.choice((_frame(2, 0, stream, bytes(5)), _frame(6, 0, 0, bytes(8)), _frame(4, 0, 0, struct.pack(">HI", 3, 100)))))
    return b"".join(out), 0, b"", "https"


def _messages(random_):
    """WebSockets at random: texts, bytes, pieces, pings, of any announced length, whole or not."""
    path = random_.choice((b"/mesh", b"/mesh", b"/live/honest.flv"))
    head = b"GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" % path
    head += b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    frames = []
    for _ in range(random_.randint(1, 60)):
        length = random_.choice((0, 5, 125, 126, 4_000, 60_000, 65_535))
        size = bytes([128 | length]) if length < 126 else bytes([254]) + struct.pack(">H", length)
        body = random_.choice((b'{"eventName":"__join","data":{"room":"r"}}', random_.randbytes(length)))
        frames.append(bytes([random_.choice((0x81, 0x82, 0x01, 0x00, 0x80, 0x89, 0x8A))]) + size + bytes(4) + body[:length].ljust(length, b" "))
    more = b"".join(frames)
    return head, len(more), more[: random_.randint(1, len(more))], "http"


KINDS = {
    "hoard": _hoard, "half": _half, "garbage": _garbage, "body": _slow_body, "reader": _slow_reader, "flood": _flood, "heads": _heads, "answers": _answers,
    "sockets": _sockets, "streams": _streams, "messages": _messages,
}  # fmt: skip
# Clients that read nothing of what they asked for.
DEAF = ("reader", "flood", "heads", "answers", "streams")
# Over TLS, whose handshake costs each end much more than a connection.
SECURE = ("heads", "answers", "streams")


class Client:
    """One connection. `more` is what goes out each 100 ms behind the first bytes; None: random bytes."""

    def __init__(self, kind, random_, ports):
        self.kind, self.random = kind, random_
        first, self.pace, self.more, port = KINDS[kind](random_)
        self.out = first
        self.due = 0.0
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8_192)
        # One stranger, not the honest clients' address.
        self.socket.bind(("127.0.0.9", 0))
        try:
            self._connect(ports[port], is_secure=port == "https")
        except OSError:
            self.socket.close()
            raise
        self.end = time.monotonic() + random_.uniform(5, 60)

    def _connect(self, port, is_secure):
        if is_secure:
            self.socket.settimeout(5)
            self.socket.connect(("127.0.0.1", port))
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            context.set_alpn_protocols(["h2"])
            self.socket = context.wrap_socket(self.socket)
            if self.socket.selected_alpn_protocol() != "h2":
                raise OSError("turned away: no HTTP/2")
        self.socket.setblocking(False)
        code = 0 if is_secure else self.socket.connect_ex(("127.0.0.1", port))
        if code not in (0, errno.EINPROGRESS):
            raise OSError(code, os.strerror(code))

    def push(self, now):
        """Writes what is due. Returns the bytes written; raises OSError when it was turned away."""
        if not self.out and self.pace and now >= self.due:
            self.due = now + 0.1
            self.out = self.more if self.more is not None else self.random.randbytes(self.pace)
        if not self.out:
            return 0
        try:
            count = self.socket.send(self.out)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return 0
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
                    budget_at, budget = now + 0.1, {kind: 2 if kind in SECURE else 12 for kind in self.kinds}
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
        events = selectors.EVENT_WRITE if kind in DEAF else selectors.EVENT_WRITE | selectors.EVENT_READ
        selector.register(client.socket, events, client)

    def _turn(self, client, selector, now):
        try:
            self.done[client.kind]["bytes"] += client.push(now)
            if client.kind not in DEAF:
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
    ports = dict(zip(("rtmp", "http", "https"), map(int, sys.argv[1:4])))
    seconds, count, seed = float(sys.argv[4]), int(sys.argv[5]), int(sys.argv[6])
    print(json.dumps(Attack(ports, count, seed, sys.argv[7:] or list(KINDS)).run(seconds)))


if __name__ == "__main__":
    main()
