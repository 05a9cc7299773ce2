"""Classes and claw machines under load, for __main__.py: what is stored and told, what is only told, and turns that end by the clock."""
import asyncio
import base64
import json
import os
import random
import time
import urllib.parse


# Seconds of a turn that nobody answers: offered, slack, and until the next.
TURN = 10 + 2 + 1.5


class Caller:
    """HTTP calls from a hundred addresses of this machine, as each may make two hundred a second. One connection each."""

    ADDRESSES = 100

    def __init__(self, server):
        self.server, self.links, self.locks = server, {}, {}

    async def post(self, number, path, body, headers=None):
        """`number`: the class's or the machine's."""
        place = address(number % self.ADDRESSES)
        async with self.locks.setdefault(place, asyncio.Lock()):
            if place not in self.links:
                host, port = self.server.http.split(":")
                self.links[place] = await asyncio.open_connection(host, int(port), local_addr=(place, 0))
            reader, writer = self.links[place]
            head = "".join(f"{name}: {value}\r\n" for name, value in (headers or {}).items())
            writer.write(f"POST {path} HTTP/1.1\r\nHost: {self.server.http}\r\nContent-Length: {len(body.encode())}\r\n{head}\r\n{body}".encode())
            answer = (await reader.readuntil(b"\r\n\r\n")).lower()
            length = int(answer.split(b"content-length: ")[1].split(b"\r")[0])
            return json.loads(await reader.readexactly(length))


class Socket(asyncio.Protocol):
    """A WebSocket of few words, and quick: the load must not be slower than the server."""

    def __init__(self, heard):
        self.heard, self.buffer, self.isOpen = heard, bytearray(), asyncio.get_running_loop().create_future()

    @classmethod
    async def open(cls, server, address, target, heard):
        host, port = server.http.split(":")
        transport, self = await asyncio.get_running_loop().create_connection(lambda: cls(heard), host, int(port), local_addr=(address, 0))
        self.transport = transport
        key = base64.b64encode(os.urandom(16)).decode()
        transport.write(f"GET {target} HTTP/1.1\r\nHost: {server.http}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                        f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode())
        await self.isOpen
        return self

    def data_received(self, data):
        buffer = self.buffer
        buffer += data
        if not self.isOpen.done():
            end = buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            assert buffer.startswith(b"HTTP/1.1 101"), bytes(buffer)
            del buffer[:end + 4]
            self.isOpen.set_result(None)
        at = 0
        while len(buffer) - at >= 2:
            size, head = buffer[at + 1], 2
            if size == 126:
                size, head = int.from_bytes(buffer[at + 2:at + 4], "big"), 4
            elif size == 127:
                size, head = int.from_bytes(buffer[at + 2:at + 10], "big"), 10
            if len(buffer) - at < head + size:
                break
            payload = bytes(buffer[at + head:at + head + size])
            if buffer[at] & 15 == 9:
                self.transport.write(bytes([0x8A, 0x80 | size]) + b"\0\0\0\0" + payload)
            elif buffer[at] & 15 == 1:
                self.heard(self, payload)
            at += head + size
        del buffer[:at]

    def connection_lost(self, error):
        if not self.isOpen.done():
            self.isOpen.set_exception(ConnectionError(f"{error}"))

    def text(self, value):
        payload = json.dumps(value).encode()
        size = len(payload)
        head = bytes([0x81, 0x80 | size]) if size < 126 else bytes([0x81, 0xFE]) + size.to_bytes(2, "big")
        self.transport.write(head + b"\0\0\0\0" + payload)


def address(number):
    return f"127.0.{1 + number // 250 % 250}.{1 + number % 250}"


class Classes:
    """Classes of seventeen: changes that are stored and heard by all, and words for one that are not stored."""

    def __init__(self, server, count, size=17):
        self.server, self.count, self.size = server, count, size
        self.caller, self.rooms = Caller(server), []
        self.stored, self.said, self.begun = [], [], {}

    async def open(self):
        gate = asyncio.Semaphore(50)

        async def join(number):
            members = []
            for seat in range(self.size):
                async with gate:
                    body = json.dumps({"roomId": f"c{number}", "userName": f"P{seat}", "audience": seat == 16})
                    found = await self.caller.post(number, "/classroom/api/v1/room/join", body)
                    assert found["errCode"] == 0, found
                    member = found["data"]["result"]
                    member["socket"] = await Socket.open(self.server, address(number), f"/channel?token={member['imToken']}", lambda _, frame: self.heard(number, frame))
                    members.append(member)
            return members

        self.rooms = await asyncio.gather(*(join(number) for number in range(self.count)))

    def heard(self, number, frame):
        # Not parsed unless it must be: the load has one core too.
        if b'"SC:DRMsg"' in frame and number in self.begun:
            self.stored.append(time.perf_counter() - self.begun[number])
        elif b'"rtc"' in frame:
            self.said.append(time.perf_counter() - json.loads(frame)["content"]["at"])

    async def load(self, changes, words, seconds):
        """`changes`, `words`: each second. Returns how many were made."""
        dice, tasks, isOn = random.Random(7), [], {}
        begun, made, sent = time.perf_counter(), 0, 0

        async def change(number):
            isOn[number] = not isOn.get(number, True)
            member, self.begun[number] = self.rooms[number][2], time.perf_counter()
            found = await self.caller.post(
                number, "/classroom/api/v1/room/device/sync", json.dumps({"roomId": f"c{number}", "cameraOn": isOn[number]}),
                {"Authorization": member["authorization"]})
            assert found["errCode"] == 0, found

        while (now := time.perf_counter()) - begun < seconds:
            while made < (now - begun) * changes:
                tasks.append(asyncio.ensure_future(change(made % self.count)))
                made += 1
            while sent < (now - begun) * words:
                one, other = dice.sample(self.rooms[dice.randrange(self.count)], 2)
                one["socket"].text({"type": "send", "to": other["userInfo"]["userId"], "object": "rtc", "content": {"at": time.perf_counter()}})
                sent += 1
            await asyncio.sleep(0.001)
        await asyncio.gather(*tasks)
        await asyncio.sleep(1)
        return made, sent


class Machines:
    """Machines with queues of twenty, whose players never answer: each turn ends by the server's clock."""

    def __init__(self, server, count, size=20, slack=2):
        self.server, self.count, self.size, self.slack = server, count, size, slack
        self.caller = Caller(server)
        self.late, self.due = [], {}

    async def open(self):
        gate = asyncio.Semaphore(50)

        async def ask(number, path, **fields):
            found = await self.caller.post(
                number, f"/dollsCatcher/{path}", urllib.parse.urlencode(fields), {"Content-Type": "application/x-www-form-urlencoded"})
            assert found["code"] == 200, found
            return found.get("data")

        async def make(number):
            async with gate:
                room = await ask(number, "host/create", accid=f"m{number}", nickname="bench", name=f"m{number}")
                for _ in range(self.size):
                    guest = await ask(number, "tourist")
                    offer = {"type": "queue.offer", "ref": 1, "value": "{}"}
                    polled = f'"POLL","key":"{guest["accid"]}"'.encode()
                    socket = await Socket.open(
                        self.server, address(number), f"/channel?token={guest['imToken']}&room=m-{room}",
                        lambda socket, frame, polled=polled, offer=offer: socket.text(offer) if polled in frame else None)
                    socket.text(offer)
                token = (await ask(number, "host/query", roomId=room))["creatorToken"]
            # The device last: it begins the turns, which are at different points in each machine.
            await asyncio.sleep(random.random() * TURN)
            await Socket.open(self.server, address(number), f"/channel?token={token}", lambda _, frame: self.heard(number, frame))

        await asyncio.gather(*(make(number) for number in range(self.count)))

    def heard(self, number, frame):
        if b'"turn"' not in frame[:20]:
            return
        frame = json.loads(frame)
        if frame["phase"] == "offered":
            self.due[number] = moment(frame["deadline"]) + self.slack
        elif number in self.due:
            self.late.append(time.time() - self.due.pop(number))


def moment(text):
    """Seconds since 1970 of "2026-11-26T04:00:00.123Z"."""
    whole, _, part = text.rstrip("Z").partition(".")
    return time.mktime(time.strptime(whole, "%Y-%m-%dT%H:%M:%S")) - time.timezone + float(f"0.{part or 0}")
