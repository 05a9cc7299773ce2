"""Three peers of aiortc in a mesh room: python3 mesh_peers.py HTTP. Each must decode two others' moving pictures and get a line from both."""
import asyncio
import json
import sys

from aiortc import RTCPeerConnection, RTCSessionDescription, VideoStreamTrack
from av import VideoFrame
import numpy
import websockets


class Moving(VideoStreamTrack):
    """A grey that grows and starts anew, so that two pictures differ."""

    def __init__(self, base):
        super().__init__()
        self.base, self.count = base, 0

    async def recv(self):
        pts, time_base = await self.next_timestamp()
        self.count += 1
        picture = numpy.full((120, 160, 3), (self.base + 6 * self.count) % 240, dtype=numpy.uint8)
        frame = VideoFrame.from_ndarray(picture, format="bgr24")
        frame.pts, frame.time_base = pts, time_base
        return frame


class Peer:
    def __init__(self, name, address, room):
        self.name, self.address, self.room = name, address, room
        self.connections, self.levels, self.lines, self.tasks = {}, {}, {}, []
        self.me, self.gone = None, []

    async def run(self):
        self.socket = await websockets.connect(self.address)
        await self.say("__join", {"room": self.room})
        async for text in self.socket:
            frame = json.loads(text)
            await getattr(self, "on" + frame["eventName"])(frame["data"])

    async def say(self, name, data):
        await self.socket.send(json.dumps({"eventName": name, "data": data}))

    def connect(self, other):
        connection = RTCPeerConnection()
        self.connections[other] = connection
        connection.addTrack(Moving(40 * len(self.name)))
        connection.on("track", lambda track: self.tasks.append(asyncio.ensure_future(self.watch(other, track))))
        connection.on("datachannel", lambda channel: self.hear(other, channel))
        return connection

    def hear(self, other, channel):
        channel.on("message", lambda text: self.lines.setdefault(other, text))
        channel.send(f"I am {self.name}")

    async def watch(self, other, track):
        while True:
            frame = await track.recv()
            self.levels.setdefault(other, set()).add(int(frame.to_ndarray(format="gray").mean()) // 8)

    async def on_peers(self, data):
        self.me = data["you"]
        for other in data["connections"]:
            connection = self.connect(other)
            channel = connection.createDataChannel("talk")
            channel.on("open", lambda channel=channel: channel.send(f"I am {self.name}"))
            channel.on("message", lambda text, other=other: self.lines.setdefault(other, text))
            await connection.setLocalDescription(await connection.createOffer())
            description = connection.localDescription
            await self.say("__offer", {"socketId": other, "sdp": {"type": description.type, "sdp": description.sdp}})

    async def on_new_peer(self, data):
        self.connect(data["socketId"])

    async def on_offer(self, data):
        connection = self.connections[data["socketId"]]
        await connection.setRemoteDescription(RTCSessionDescription(**data["sdp"]))
        await connection.setLocalDescription(await connection.createAnswer())
        description = connection.localDescription
        await self.say("__answer", {"socketId": data["socketId"], "sdp": {"type": description.type, "sdp": description.sdp}})

    async def on_answer(self, data):
        await self.connections[data["socketId"]].setRemoteDescription(RTCSessionDescription(**data["sdp"]))

    async def on_remove_peer(self, data):
        self.gone.append(data["socketId"])

    @property
    def sees_all(self):
        return len(self.lines) == 2 and sum(len(levels) >= 5 for levels in self.levels.values()) == 2


async def main(http):
    peers = [Peer(name, f"ws://{http}/mesh", "lobby") for name in ["a", "bb", "ccc"]]
    tasks = []
    for peer in peers:
        tasks.append(asyncio.ensure_future(peer.run()))
        # One after another, so that the newcomer offers.
        while peer.me is None:
            await asyncio.sleep(0.05)
            assert not tasks[-1].done(), tasks[-1]
    end = asyncio.get_running_loop().time() + 90
    while not all(peer.sees_all for peer in peers):
        assert asyncio.get_running_loop().time() < end, [(peer.lines, {key: len(value) for key, value in peer.levels.items()}) for peer in peers]
        await asyncio.sleep(0.2)
    # The connection of one is cut without a word.
    peers[2].socket.transport.abort()
    while not all(peers[2].me in peer.gone for peer in peers[:2]):
        assert asyncio.get_running_loop().time() < end, "a peer that is gone is told to the others"
        await asyncio.sleep(0.1)
    for peer in peers:
        for connection in peer.connections.values():
            await connection.close()
    for task in tasks:
        task.cancel()


asyncio.run(asyncio.wait_for(main(sys.argv[1]), 150))
