"""Few descriptors, and clients that take them all: health checks are answered all the same, streams go on, and everything works again when
the clients are gone."""

import contextlib
import os
import shutil
import socket

from media import Publisher, Viewer
from server import Server
from tools import eventually

# With these limits a client that says nothing stays connected.
SETTINGS = {"limits.handshake": "5m", "limits.connect": "5m", "limits.httpHead": "5m", "recording.apps": "live", "recording.minFree": "0B"}
GREETINGS = (
    b"",
    b"\x03",
    b"\x03" + bytes(700),
    b"\x03" + bytes(1536) + bytes(1536),
    b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n",
    b"GET /api/v1/rooms HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    b"POST /api/v1/rooms HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n{",
    b"\x16\x03\x01",
)


def run(context):
    if not shutil.which("prlimit"):
        raise RuntimeError("prlimit is not installed: scripts/packages.sh test does that")
    waves = 2 if context.is_short else 6
    for number in context.each_round():
        folder = context.path(f"round-{number}", "")
        limit = context.random.randint(176, 420)
        under = ("prlimit", f"--nofile={limit}:{limit}")
        with Server(context.earshot, os.path.join(folder, "data"), SETTINGS, under=under) as server:
            with Publisher(context, f"{server.rtmp}/live/cam1", os.path.join(folder, "publisher.log")):
                with Viewer(server.http_port, "cam1") as viewer:
                    if context.expect(viewer.sees(20), f"no stream before anything was done: {server.tail()}"):
                        before = server.descriptors()
                        for _ in range(waves):
                            _wave(context, server, viewer, limit, before)
        context.forget(folder)


def _wave(context, server, viewer, limit, before):
    what = f"{limit} descriptors"
    viewer.watch()
    clients = _connect(context, server, 2 * limit)
    healthy = eventually(10, lambda: server.answers(timeout=3) == 200, 0.2)
    context.expect(healthy, f"{what}: no health check for 10 s among {len(clients)} clients")
    context.expect(viewer.sees(10, 50), f"{what}: the stream stands still among {len(clients)} clients")
    context.expect(server.descriptors() <= limit, f"{what}: the server has {server.descriptors()}")
    context.count("clients", len(clients))
    for client in clients:
        client.close()
    context.expect(server.is_running, f"{what}: the server ended: {server.tail()}")
    context.expect(eventually(15, lambda: server.answers("/api/v1/rooms") == 200, 0.2), f"{what}: no API for 15 s after the clients were gone")
    with Viewer(server.http_port, "cam1") as late:
        context.expect(late.sees(15), f"{what}: nobody can join after the clients were gone")
    back = eventually(20, lambda: server.descriptors() <= before + 12, 0.2)
    context.expect(back, f"{what}: {server.descriptors()} are open after the clients were gone, and {before} were before")


def _connect(context, server, count):
    """Clients of all sorts, which say a little and stay."""
    clients = []
    for _ in range(count):
        port = server.rtmp_port if context.random.random() < 0.5 else server.http_port
        # Turned away ones are kept, too: their ends are known to be closed only when somebody reads.
        with contextlib.suppress(OSError):
            client = socket.create_connection(("127.0.0.1", port), timeout=2)
            clients.append(client)
            client.sendall(context.random.choice(GREETINGS))
            if context.random.random() < 0.1:
                clients.pop(context.random.randrange(len(clients))).close()
    return clients
