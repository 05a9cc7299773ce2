"""Plays a stream by WHEP with aiortc: whep_client.py URL VIDEO_FD SOUND_FD. Runs with the package in PYTHONPATH, until its session ends.

Writes each decoded picture to one descriptor, 320x180 in rgb24, and the left channel of the sound to the other, 16 bit at 48 kHz. Says in lines of JSON
on standard output what happens, and five times a second how it goes. A line "leave" on standard input ends the session as a client does, by DELETE.
"""

import array
import asyncio
import fcntl
import os
import sys

import aioice.ice
import av
from aiortc import RTCConfiguration, RTCPeerConnection, RTCSessionDescription, sdp
from aiortc.mediastreams import MediaStreamError

from signalling import call, say

WIDTH, HEIGHT = 320, 180
# fcntl(2). A picture does not fit a usual pipe; writing it would stop the receiver until it is read.
F_SETPIPE_SZ, PIPE_BYTES = 1031, 1 << 20


class Client:
    """One session, from the offer to its end."""

    def __init__(self, url, video, sound):
        self.url, self.video, self.sound = url, video, sound
        self.tasks = []
        self.leaving = None
        self.frames = {"video": 0, "audio": 0}
        self.size = self.last_time = None
        # Pictures whose times are not after those before them, and the longest step of the times in seconds.
        self.backward, self.longest_step = 0, 0.0
        self.asked = {"nack": 0, "pli": 0}
        self.codecs = {}
        self.resampler = None
        self.location = None
        self.over = asyncio.Event()

    async def run(self):
        # aioice leaves out the loopback; the test's traffic stays there.
        aioice.ice.get_host_addresses = lambda use_ipv4, use_ipv6: ["127.0.0.1"]
        # Without servers of STUN: the usual one is far away.
        self.connection = connection = RTCPeerConnection(RTCConfiguration(iceServers=[]))
        connection.on("connectionstatechange", self._state_changed)
        for kind in ("video", "audio"):
            connection.addTransceiver(kind, direction="recvonly")
        connection.on("track", lambda track: self.tasks.append(asyncio.ensure_future(self._watch(track))))
        await connection.setLocalDescription(await connection.createOffer())
        asyncio.get_running_loop().add_reader(0, self._obey)
        offer = connection.localDescription.sdp
        say("offered", sdp=offer)
        status, headers, text = await asyncio.to_thread(call, "POST", self.url, offer, "application/sdp")
        self.location = headers.get("Location")
        say("answered", status=status, location=self.location, etag=headers.get("ETag"), text=text)
        if status != 201:
            return
        for receiver in connection.getReceivers():
            self._count(receiver)
        self.codecs = {media.kind: media.rtp.codecs[0].mimeType for media in sdp.SessionDescription.parse(text).media}
        await connection.setRemoteDescription(RTCSessionDescription(text, "answer"))
        self.tasks.append(asyncio.ensure_future(self._report()))
        await self.over.wait()
        for task in self.tasks:
            task.cancel()
        # The server's goodbye may be faster than its answer.
        if self.leaving:
            await self.leaving
        await connection.close()
        say("over")

    def _state_changed(self):
        say("state", state=self.connection.connectionState)
        if self.connection.connectionState in ("closed", "failed"):
            self.over.set()

    def _count(self, receiver):
        """Counts the receiver's requests: its own statistics do not."""
        for word in self.asked:
            send = getattr(receiver, f"_send_rtcp_{word}")

            async def counted(*arguments, word=word, send=send):
                self.asked[word] += 1
                await send(*arguments)

            setattr(receiver, f"_send_rtcp_{word}", counted)

    async def _watch(self, track):
        try:
            while True:
                frame = await track.recv()
                self.frames[track.kind] += 1
                if self.frames[track.kind] == 1:
                    say("first", kind=track.kind)
                if track.kind == "video":
                    self._take_picture(frame)
                else:
                    self._take_sound(frame)
        except MediaStreamError:
            say("ended", kind=track.kind)

    def _take_sound(self, frame):
        if frame.sample_rate != 48000:
            # G.711, though the answer names Opus first.
            self.codecs["audio"] = "audio/PCMU"
            self.resampler = self.resampler or av.AudioResampler(format="s16", layout="stereo", rate=48000)
            for part in self.resampler.resample(frame):
                self._take_sound(part)
            return
        os.write(self.sound, array.array("h", bytes(frame.planes[0])[: frame.samples * 4])[::2].tobytes())

    def _take_picture(self, frame):
        seconds = float(frame.pts * frame.time_base)
        if self.last_time is not None:
            self.backward += seconds <= self.last_time
            self.longest_step = max(self.longest_step, seconds - self.last_time)
        self.last_time = seconds
        if self.size != (frame.width, frame.height):
            self.size = (frame.width, frame.height)
            say("size", size=self.size)
        plane = frame.reformat(WIDTH, HEIGHT, "rgb24").planes[0]
        pixels, stride = memoryview(plane), plane.line_size
        if stride != 3 * WIDTH:
            pixels = b"".join(pixels[y * stride : y * stride + 3 * WIDTH] for y in range(HEIGHT))
        while pixels:
            pixels = pixels[os.write(self.video, pixels) :]

    async def _report(self):
        while True:
            await asyncio.sleep(0.2)
            figures = {"received": 0, "lost": 0}
            for receiver in self.connection.getReceivers():
                if receiver.track.kind == "video":
                    # getStats() has one entry for all sources, and repeats have a source of their own.
                    for source in receiver._RTCRtpReceiver__remote_streams.values():
                        if source.packets_received > figures["received"]:
                            figures = {"received": source.packets_received, "lost": source.packets_lost}
            say("figures", frames=self.frames, codecs=self.codecs, size=self.size, backward=self.backward, longestStep=self.longest_step, **self.asked, **figures)

    def _obey(self):
        line = os.read(0, 100)
        if line.startswith(b"leave"):
            self.leaving = asyncio.ensure_future(self._leave())
        elif not line:
            asyncio.get_running_loop().remove_reader(0)

    async def _leave(self):
        status, _, _ = await asyncio.to_thread(call, "DELETE", self.location)
        say("left", status=status)


def main():
    url, video, sound = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    for pipe in (video, sound):
        fcntl.fcntl(pipe, F_SETPIPE_SZ, PIPE_BYTES)
    asyncio.run(Client(url, video, sound).run())


if __name__ == "__main__":
    main()
