"""The cost of apps: python3 Benchmarks/Apps --earshot BINARY --results FOLDER. PARTS, MEMBERS, FRAMES, SECONDS_MEASURED, CALLS, CLASSES, MACHINES and
BOTH_CLASSES choose (apps.sh)."""
import argparse
import asyncio
import base64
import hashlib
import hmac
import http.client
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "Tests", "Console"))
import rooms  # noqa: E402
from server import Server, wait_for  # noqa: E402

SECONDS = int(os.environ.get("SECONDS_MEASURED", "30"))
MEMBERS = int(os.environ.get("MEMBERS", "10000"))
FRAMES = int(os.environ.get("FRAMES", "2000"))
CALLS = int(os.environ.get("CALLS", "200"))
CLASSES = int(os.environ.get("CLASSES", "1000"))
MACHINES = int(os.environ.get("MACHINES", "200"))
BOTH_CLASSES = int(os.environ.get("BOTH_CLASSES", "650"))
ROWS, MISSED = [], []


def row(what, value, bar, is_met):
    ROWS.append((what, value, bar, "" if is_met else "MISSED"))
    if not is_met:
        MISSED.append(what)
    print(f"{what:58} {value:>24}   {bar:>20} {'' if is_met else 'MISSED'}", flush=True)


def quantile(values, share):
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def rss(server):
    """Bytes of the server in RAM."""
    with open(f"/proc/{server.process.pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * 4096


def cpu(server):
    """Seconds of CPU that the server has used."""
    with open(f"/proc/{server.process.pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Socket:
    """A WebSocket of few words."""

    @classmethod
    async def open(cls, server, target):
        self = cls()
        host, port = server.http.split(":")
        self.reader, self.writer = await asyncio.open_connection(host, int(port), limit=1 << 17)
        key = base64.b64encode(os.urandom(16)).decode()
        self.writer.write(f"GET {target} HTTP/1.1\r\nHost: {server.http}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                          f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode())
        head = await self.reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 101"), head + await self.reader.read(500)
        return self

    def send(self, name, data):
        payload = json.dumps({"eventName": name, "data": data}).encode()
        size = len(payload)
        head = bytes([0x81, 0x80 | size]) if size < 126 else bytes([0x81, 0xFE]) + size.to_bytes(2, "big")
        # A mask of zeros leaves the payload as it is.
        self.writer.write(head + b"\0\0\0\0" + payload)

    async def frame(self):
        """The next text; pings are answered."""
        while True:
            first, second = await self.reader.readexactly(2)
            size = second
            if size == 126:
                size = int.from_bytes(await self.reader.readexactly(2), "big")
            elif size == 127:
                size = int.from_bytes(await self.reader.readexactly(8), "big")
            payload = await self.reader.readexactly(size)
            if first & 15 == 9:
                self.writer.write(bytes([0x8A, 0x80 | size]) + b"\0\0\0\0" + payload)
            elif first & 15 == 1:
                return json.loads(payload)
            elif first & 15 == 8:
                raise ConnectionError(payload)


async def join(server, room):
    socket = await Socket.open(server, "/mesh")
    socket.send("__join", {"room": room})
    while True:
        frame = await socket.frame()
        if frame["eventName"] == "_peers":
            socket.id = frame["data"]["you"]
            return socket


async def idle(server):
    """Members of rooms of five, who only answer pings."""
    before, sockets = rss(server), []
    gate = asyncio.Semaphore(100)

    async def one(index):
        async with gate:
            sockets.append(await join(server, f"room-{index // 5}"))

    begun = time.monotonic()
    await asyncio.gather(*(one(index) for index in range(MEMBERS)))
    joined = time.monotonic() - begun

    async def answer(socket):
        while True:
            await socket.frame()

    tasks = [asyncio.ensure_future(answer(socket)) for socket in sockets]
    await asyncio.sleep(5)
    used = cpu(server)
    await asyncio.sleep(SECONDS)
    used = cpu(server) - used
    assert server.api("gatherings?kind=mesh")["total"] == (MEMBERS + 4) // 5
    each = (rss(server) - before) / MEMBERS / 1024
    row(f"{MEMBERS:,} mesh members idle in rooms of 5: memory each", f"{each:.1f} KiB", "at most 20 KB", each * 1.024 <= 20)
    row("… CPU of one core, pings included", f"{100 * used / SECONDS:.1f} %", "", True)
    row("… joined in", f"{joined:.1f} s", "", True)
    for task in tasks:
        task.cancel()
    for socket in sockets:
        socket.writer.close()


async def relay(server):
    """Pairs that send one another offers at a pace; the server has one core."""
    pairs = [(await join(server, f"pair-{index}"), await join(server, f"pair-{index}")) for index in range(FRAMES // 20)]
    delays, isOver = [], False

    async def listen(socket):
        while True:
            frame = await socket.frame()
            if frame["eventName"] == "_offer":
                delays.append(time.perf_counter() - frame["data"]["sdp"]["at"])

    tasks = [asyncio.ensure_future(listen(other)) for _, other in pairs]
    padding = "v" * 1500
    begun, sent, used = time.perf_counter(), 0, cpu(server)
    while (now := time.perf_counter()) - begun < SECONDS:
        while sent < (now - begun) * FRAMES:
            one, other = pairs[sent % len(pairs)]
            one.send("__offer", {"socketId": other.id, "sdp": {"at": time.perf_counter(), "sdp": padding}})
            sent += 1
        await asyncio.sleep(0.001)
    await asyncio.sleep(1)
    used = cpu(server) - used
    for task in tasks:
        task.cancel()
    p50, p99 = quantile(delays, 0.5) * 1000, quantile(delays, 0.99) * 1000
    row(f"{FRAMES:,} mesh frames a second of 1.6 KB: delay p50 / p99", f"{p50:.2f} / {p99:.2f} ms", "p99 under 5 ms", p99 < 5)
    row("… frames that arrived", f"{len(delays):,} of {sent:,}", "all", len(delays) == sent)
    row("… server CPU for each frame", f"{used / sent * 1e6:.0f} µs", "", True)
    for pair in pairs:
        for socket in pair:
            socket.writer.close()


class Cloud:
    """A back end's calls, signed by TC3."""

    def __init__(self, server):
        made = subprocess.run(
            [server.binary, "keys", "create", "bench", "--role", "ops", "--json", "--data", os.path.join(server.folder, "data")],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30, check=True)
        self.server, self.key = server, json.loads(made.stdout)

    def head(self, action, body):
        now = int(time.time())
        date = time.strftime("%Y-%m-%d", time.gmtime(now))
        canonical = f"POST\n/\n\ncontent-type:application/json\nhost:{self.server.http}\n\ncontent-type;host\n{hashlib.sha256(body).hexdigest()}"
        text = f"TC3-HMAC-SHA256\n{now}\n{date}/live/tc3_request\n{hashlib.sha256(canonical.encode()).hexdigest()}"
        code = ("TC3" + self.key["secretKey"]).encode()
        for part in (date, "live", "tc3_request"):
            code = hmac.new(code, part.encode(), hashlib.sha256).digest()
        signature = hmac.new(code, text.encode(), hashlib.sha256).hexdigest()
        return {
            "Content-Type": "application/json", "Host": self.server.http, "X-TC-Action": action, "X-TC-Version": "2018-08-01",
            "X-TC-Timestamp": str(now), "Authorization": f"TC3-HMAC-SHA256 Credential={self.key['secretId']}/{date}/live/tc3_request, "
                                                         f"SignedHeaders=content-type;host, Signature={signature}"}

    def run(self, calls, rate, seconds):
        """Makes the calls at this pace, from eight connections; the delays of all, from when each was due."""
        delays, failures, lock, count = [], [], threading.Lock(), [0]
        begun = time.monotonic() + 0.2

        def work():
            link = http.client.HTTPConnection(self.server.http, timeout=30)
            while True:
                with lock:
                    number = count[0]
                    count[0] += 1
                due = begun + number / rate
                if number >= rate * seconds:
                    return
                time.sleep(max(0, due - time.monotonic()))
                action, fields = calls(number)
                body = json.dumps(fields).encode()
                link.request("POST", "/", body, self.head(action, body))
                answer = json.loads(link.getresponse().read())["Response"]
                delays.append(time.monotonic() - due)
                if "Error" in answer:
                    failures.append(answer["Error"])

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures, failures[:3]
        return delays


async def watch(server, count, stop):
    """Viewers of a stream over HTTP-FLV, who take what comes."""
    host, port = server.http.split(":")

    async def one():
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(f"GET /live/walk.flv HTTP/1.1\r\nHost: {server.http}\r\n\r\n".encode())
        while not stop.is_set():
            if not await reader.read(1 << 16):
                raise ConnectionError("a viewer was cut")
        writer.close()

    await asyncio.gather(*(one() for _ in range(count)))


def facade(server):
    """Reads, and writes that are stored, beside 200 viewers."""
    push = subprocess.Popen(
        ["ffmpeg", "-v", "error", "-re", "-f", "lavfi", "-i", "testsrc=size=640x360:rate=25", "-c:v", "libx264", "-preset", "ultrafast", "-g", "25",
         "-b:v", "800k", "-minrate", "800k", "-maxrate", "800k", "-bufsize", "800k", "-pix_fmt", "yuv420p", "-f", "flv", f"rtmp://{server.rtmp}/live/walk"],
        stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    stop = threading.Event()
    viewers = threading.Thread(target=lambda: asyncio.run(watch(server, 200, stop)), daemon=True)
    try:
        wait_for("the push", lambda: server.is_live("walk"))
        viewers.start()
        wait_for("the viewers", lambda: server.api("streams/live/walk")["stream"]["viewers"] == 200)
        cloud = Cloud(server)
        stream = {"AppName": "live", "DomainName": "push.example.com"}
        reads = cloud.run(lambda number: ("DescribeLiveStreamState", {**stream, "StreamName": "walk"}) if number % 2 else ("DescribeLiveStreamOnlineList", {"AppName": "live"}), CALLS, SECONDS)
        writes = cloud.run(lambda number: ("ForbidLiveStream" if number % 2 == 0 else "ResumeLiveStream", {**stream, "StreamName": f"cam-{number // 2}"}), CALLS, SECONDS)
        for name, delays, bar in (("reads", reads, 10), ("stored writes", writes, 50)):
            p50, p99 = quantile(delays, 0.5) * 1000, quantile(delays, 0.99) * 1000
            row(f"{CALLS} {name} a second of the cloud's API, 200 viewers: p50 / p99", f"{p50:.1f} / {p99:.1f} ms", f"p99 under {bar} ms", p99 < bar)
        sessions = server.api("sessions?role=player&limit=1000")["list"]
        skipped = sum(viewer["framesSkipped"] for session in sessions for viewer in session["playing"])
        row("… viewers at the end, and frames that they lack", f"{len(sessions)}, {skipped}", "200, 0", len(sessions) == 200 and skipped == 0)
    finally:
        stop.set()
        push.kill()
        push.wait()


async def gatherings(server, classes, machines):
    """So many classes and machines at once; the server has one core."""
    made, turns = rooms.Classes(server, classes), rooms.Machines(server, machines)
    await made.open()
    await turns.open()
    await asyncio.sleep(3)
    used, before, turns.late = cpu(server), rss(server), []
    if classes:
        changes, words = await made.load(100, FRAMES, SECONDS)
    else:
        await asyncio.sleep(SECONDS + 1)
    used = cpu(server) - used
    what = " and ".join([f"{classes:,} classes of 17"] * (classes > 0) + [f"{machines} machines with queues of 20"] * (machines > 0))
    people = classes * made.size + machines * (turns.size + 1)
    row(f"{what}: {people:,} people, CPU of one core", f"{100 * used / (SECONDS + 1):.0f} %", "", True)
    row("… memory of the server", f"{before / 1048576:.0f} MiB", "", True)
    if classes:
        p50, p99 = quantile(made.stored, 0.5) * 1000, quantile(made.stored, 0.99) * 1000
        row("… 100 stored changes a second: p50 / p99", f"{p50:.1f} / {p99:.1f} ms", "p99 at most 50 ms", p99 <= 50)
        row("… receivers that heard", f"{len(made.stored):,} of {changes * made.size:,}", "all", len(made.stored) == changes * made.size)
        p50, p99 = quantile(made.said, 0.5) * 1000, quantile(made.said, 0.99) * 1000
        row(f"… {FRAMES:,} words a second, not stored: p50 / p99", f"{p50:.1f} / {p99:.1f} ms", "p99 at most 20 ms", p99 <= 20)
        row("… that arrived", f"{len(made.said):,} of {words:,}", "all", len(made.said) == words)
    if machines:
        p50, worst = quantile(turns.late, 0.5) * 1000, max(turns.late) * 1000
        row(f"… {len(turns.late):,} turns ended late by p50 / worst", f"{p50:.0f} / {worst:.0f} ms", "at most 100 ms", worst <= 100)


def classes(server):
    return gatherings(server, CLASSES, 0)


def machines(server):
    return gatherings(server, 0, MACHINES)


def both(server):
    return gatherings(server, BOTH_CLASSES, MACHINES)


def main():
    parser = argparse.ArgumentParser(prog="apps")
    parser.add_argument("--earshot", required=True)
    parser.add_argument("--results", required=True)
    options = parser.parse_args()
    parts = os.environ.get("PARTS", "idle relay facade classes machines both").split()
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    members = max(MEMBERS, CLASSES * 17, BOTH_CLASSES * 17 + MACHINES * 21) + 1500
    settings = {
        # One address may have half of all connections.
        "EARSHOT_LIMITS_CONNECTIONS": "1000", "EARSHOT_LIMITS_HTTP_CONNECTIONS": str(members * 2 + 1000),
        "EARSHOT_LIMITS_HTTP_PER_ADDRESS": str(members + 500),
        "EARSHOT_API_RATE_LIMIT": "1000",
    }
    for name, part in (("idle", idle), ("relay", relay), ("facade", facade), ("classes", classes), ("machines", machines), ("both", both)):
        if name not in parts:
            continue
        if part in (classes, machines, both):
            # Nobody publishes or plays: those descriptors are the sockets'.
            settings["EARSHOT_LIMITS_CONNECTIONS"] = "10"
        # One core for the server; the load has the others.
        before = ["taskset", "-c", "0"] if name in ("relay", "classes", "machines", "both") else []
        with tempfile.TemporaryDirectory(prefix="earshot-bench-") as folder, Server(os.path.abspath(options.earshot), folder, settings=settings, before=before) as server:
            if name == "facade":
                part(server)
            else:
                asyncio.run(part(server))
    with open(os.path.join(options.results, "apps.json"), "w", encoding="utf-8") as file:
        json.dump(ROWS, file, indent=1, ensure_ascii=False)
    sys.exit(f"missed: {', '.join(MISSED)}" if MISSED else 0)


main()
