"""A node with all devices is killed with -9: how soon they are live on the two others. wave.py --earshot BINARY; see README.md of the benchmarks.

Each device comes back once, at a moment of its own within five seconds, as devices do that wait at random; one that is refused tries the other node a
second later. Prints one line a round, and a last one; with --json writes them, too. Exits with 1 where a device was not back within the limit.
"""

import argparse
import asyncio
import contextlib
import json
import os
import random
import secrets
import signal
import struct
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.join(HERE, "..", "..", "Tests")
sys.path[:0] = [os.path.join(TESTS, folder) for folder in ("Torture", "Players", "Console")]

from media import make_sample  # noqa: E402
from postgres import Database  # noqa: E402
from pushers import first_tags  # noqa: E402
from rtmp_push import AMF_NULL, CHUNK, amf_object, amf_string, command, message  # noqa: E402
from server import Server  # noqa: E402
from tools import eventually  # noqa: E402

SETTINGS = {"rooms.policy.grace": "10m", "limits.publishesPerAddress": "100000", "limits.roomsPerAddress": "100000", "recording.minFree": "0B"}
# Seconds: over which the devices spread their tries; between tries; from the kill on until all must be live.
SPREAD, PAUSE, LIMIT = 5, 1, 15
# So many begin to push each second, before the kill.
STARTS = 100


class Device:
    """One camera. Knows when it was live, and how long the server took to let it in."""

    def __init__(self, wave, number):
        self.wave, self.name = wave, f"cam{number}"
        self.live_at = self.admitted_in = None
        self.refusals = 0
        self._turn = number

    async def run(self):
        wave = self.wave
        await asyncio.sleep(self._turn / STARTS)
        # The first node, until that is killed.
        while wave.killed_at is None:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                await self._push(wave.nodes[0])
            if wave.killed_at is None:
                await asyncio.sleep(PAUSE)
        self.live_at = None
        await asyncio.sleep(wave.random.uniform(0, SPREAD))
        while True:
            node = wave.nodes[1 + self._turn % 2]
            self._turn += 1
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                await self._push(node)
            self.refusals += 1
            await asyncio.sleep(PAUSE)

    async def _push(self, node):
        began = time.monotonic()
        reader, writer = await asyncio.open_connection("127.0.0.1", node.rtmp_port)
        try:
            writer.write(b"\x03" + bytes(8) + os.urandom(1528))
            answer = await reader.readexactly(1 + 1536 + 1536)
            url = amf_string(f"{node.rtmp}/live")
            writer.write(answer[1:1537] + message(2, 1, 0, 0, struct.pack(">I", CHUNK)))
            writer.write(command("connect", 1, amf_object([("app", amf_string("live")), ("tcUrl", url)])))
            writer.write(command("createStream", 2, AMF_NULL))
            # The same query each time is the same device.
            writer.write(command("publish", 3, AMF_NULL, amf_string(f"{self.name}?user={self.name}"), amf_string("live"), stream=1))
            seen = b""
            while b"NetStream.Publish.Start" not in seen:
                data = await reader.read(65536)
                if not data:
                    raise ConnectionError("the server closed the connection")
                seen = seen[-200:] + data
            self.live_at = time.monotonic()
            self.admitted_in = self.live_at - began
            await self._stream(reader, writer)
        finally:
            writer.transport.abort()

    async def _stream(self, reader, writer):
        """Keyframes each second, until the server ends."""
        ended = asyncio.ensure_future(self._drain(reader))
        (headers, (kind, body)), began = self.wave.tags, time.monotonic()
        for header, content in headers:
            writer.write(message(6 if header == 9 else 4, header, 0, 1, content))
        while not ended.done():
            writer.write(message(6, kind, int((time.monotonic() - began) * 1000), 1, body))
            await asyncio.wait([ended], timeout=1)

    async def _drain(self, reader):
        with contextlib.suppress(OSError):
            while await reader.read(65536):
                pass


class Wave:
    """One round: three nodes, all devices on the first, which is killed."""

    def __init__(self, options, folder, tags):
        self.options, self.folder, self.tags = options, folder, tags
        self.random = random.Random(secrets.randbits(32))
        self.nodes, self.killed_at = [], None

    def run(self):
        with contextlib.ExitStack() as stack:
            database = stack.enter_context(Database(self.folder))
            secret = {"EARSHOT_DATABASE_URL": database.url, "EARSHOT_CLUSTER_KEY": secrets.token_urlsafe(48)}
            for name in ("a", "b", "c"):
                settings = {**SETTINGS, "cluster.name": name}
                server = Server(self.options.earshot, os.path.join(self.folder, name, "data"), settings, secret)
                stack.callback(server.process.stop, grace=8)
                self.nodes.append(server)
            if not eventually(30, lambda: all(node.answers("/readyz") == 200 for node in self.nodes), 0.1):
                raise RuntimeError("not all nodes are ready")
            figures = asyncio.run(self._wave())
            doubled = database.rows("SELECT name FROM pushes WHERE ended_at IS NULL GROUP BY name HAVING count(*) > 1")
            figures["streams on two nodes"] = len(doubled)
            return figures

    async def _wave(self):
        devices = [Device(self, number) for number in range(self.options.count)]
        tasks = [asyncio.create_task(device.run()) for device in devices]
        await self._all_live(devices, self.options.count / STARTS + 60)
        os.kill(self.nodes[0].pid, signal.SIGKILL)
        self.killed_at = time.monotonic()
        refusals = sum(device.refusals for device in devices)
        await self._all_live(devices, LIMIT * 4)
        back = [(device.live_at - self.killed_at) * 1000 for device in devices if device.live_at and device.live_at > self.killed_at]
        admitted = [device.admitted_in * 1000 for device in devices if device.live_at and device.live_at > self.killed_at]
        figures = {
            "devices": len(devices), "not back": len(devices) - len(back), "late": sum(value > LIMIT * 1000 for value in back),
            "refused tries": sum(device.refusals for device in devices) - refusals, "back": quantiles(back), "admission": quantiles(admitted)}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return figures

    async def _all_live(self, devices, seconds):
        ends = time.monotonic() + seconds
        since = self.killed_at or 0
        while time.monotonic() < ends and not all(device.live_at and device.live_at > since for device in devices):
            await asyncio.sleep(0.05)


def quantiles(values):
    """Milliseconds: of half, of 99 in 100, and the most."""
    values = sorted(values) or [0]
    return {"p50": round(values[len(values) // 2]), "p99": round(values[min(len(values) - 1, len(values) * 99 // 100)]), "max": round(values[-1])}


def main():
    parser = argparse.ArgumentParser(prog="wave.py", description="All devices of a lost node come back.")
    parser.add_argument("--earshot", required=True, help="the binary to measure")
    parser.add_argument("--count", type=int, default=1000, help="devices (1 to 5000)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", help="where the figures go")
    options = parser.parse_args()
    options.earshot = os.path.abspath(options.earshot)
    if not 1 <= options.count <= 5000 or not 1 <= options.rounds <= 100:
        parser.error("--count is 1 to 5000, --rounds 1 to 100")
    rounds = []
    with tempfile.TemporaryDirectory(prefix="earshot-wave-") as folder:
        sample = os.path.join(folder, "sample.flv")
        make_sample(sample, seconds=2)
        for number in range(options.rounds):
            within = os.path.join(folder, str(number))
            os.makedirs(within)
            figures = Wave(options, within, first_tags(sample)).run()
            figures["load"] = os.getloadavg()[0]
            rounds.append(figures)
            print(f"round {number + 1}: {json.dumps(figures)}", flush=True)
    failed = any(figures["not back"] or figures["late"] or figures["streams on two nodes"] for figures in rounds)
    print(f"wave: {options.count} devices, {'not all' if failed else 'all'} live within {LIMIT} s in {options.rounds} rounds", flush=True)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(rounds, file, indent=1)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
