"""Plays a stream by WHEP with libdatachannel: libdatachannel_client.py URL VIDEO_FD SOUND_FD FFMPEG CODECS. For CPython 3.13 with libdatachannel-py.

CODECS are the names of the video codecs to offer, with commas, or `tcp` among them: ICE over TCP alone. The library takes packets; FFMPEG decodes them. Writes and says what whep_client.py
does, which see.
"""

import os
import queue
import socket
import subprocess
import sys
import tempfile
import threading
import time

import libdatachannel as rtc

import signalling
from signalling import call

WIDTH, HEIGHT = 320, 180
PICTURE_BYTES = 3 * WIDTH * HEIGHT
SOUND = 111
# Payload types, names and parameters of what may be offered.
VIDEO = {
    "h264": (102, "H264/90000", "profile-level-id=42e01f;packetization-mode=1;level-asymmetry-allowed=1"),
    "h265": (104, "H265/90000", "level-id=93;profile-id=1;tier-flag=0;tx-mode=SRST"),
    "av1": (106, "AV1/90000", "level-idx=5;profile=0;tier=0"),
    "vp9": (108, "VP9/90000", "profile-id=0"),
}

_saying = threading.Lock()


def say(what, **more):
    # The library calls from threads of its own.
    with _saying:
        signalling.say(what, **more)


class Decoder:
    """ffmpeg, which gets a track's packets and gives pictures or sound."""

    def __init__(self, ffmpeg, kind, payload_type, name, parameters, pipe, came):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        probe = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        probe.bind(("127.0.0.1", 0))
        self.address = probe.getsockname()
        probe.close()
        fmtp = f"a=fmtp:{payload_type} {parameters}\r\n" if parameters else ""
        sdp = f"v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm={kind} {self.address[1]} RTP/AVP {payload_type}\r\na=rtpmap:{payload_type} {name}\r\n{fmtp}"
        with tempfile.NamedTemporaryFile("w", suffix=".sdp", delete=False) as file:
            file.write(sdp)
        live = ["-fflags", "nobuffer", "-flags", "low_delay", "-probesize", "32", "-analyzeduration", "1", "-max_delay", "0", "-reorder_queue_size", "0"]
        out = ["-vf", f"scale={WIDTH}:{HEIGHT}", "-fps_mode", "passthrough", "-f", "rawvideo", "-pix_fmt", "rgb24"] if kind == "video" else ["-af", "pan=mono|c0=c0", "-f", "s16le", "-ar", "48000"]
        command = [ffmpeg, "-v", "error", "-threads", "1", "-protocol_whitelist", "file,udp,rtp", *live, "-i", file.name, *out, "-flush_packets", "1", "pipe:1"]
        # The library's own loader must not reach it.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=environment)
        self.file = file.name
        self.packets = queue.SimpleQueue()
        threading.Thread(target=self._pass_on, args=(kind, pipe, came), daemon=True).start()
        threading.Thread(target=self._feed, daemon=True).start()

    def take(self, packet):
        self.packets.put(packet)

    def _feed(self):
        # What is sent before ffmpeg listens is lost.
        while not self._is_heard() and self.process.poll() is None:
            time.sleep(0.005)
        while True:
            self.socket.sendto(self.packets.get(), self.address)
            # The first are many, and sockets' buffers small.
            if self.packets.qsize() > 16:
                time.sleep(0.0002)

    def _is_heard(self):
        with open("/proc/net/udp", encoding="ascii") as table:
            return any(line.split()[1].endswith(f":{self.address[1]:04X}") for line in table)

    def _pass_on(self, kind, pipe, came):
        size = PICTURE_BYTES if kind == "video" else 1920
        while data := self.process.stdout.read(size):
            came(kind)
            while data:
                data = data[os.write(pipe, data) :]

    def end(self):
        self.process.kill()
        self.process.wait()
        os.unlink(self.file)


class Client:
    """One session, from the offer to its end."""

    def __init__(self, url, video, sound, ffmpeg, codecs):
        self.url, self.pipes, self.ffmpeg = url, {"video": video, "audio": sound}, ffmpeg
        self.offered = [name for name in codecs.split(",") if name in VIDEO]
        self.frames = {"video": 0, "audio": 0}
        self.codecs, self.decoders = {}, {}
        self.figures = {"received": 0, "lost": 0, "nack": 0, "pli": 0, "backward": 0}
        self.last = None
        self.over = threading.Event()
        self.gathered = threading.Event()
        self.location = None
        settings = rtc.Configuration()
        # The test's traffic stays on the loopback.
        settings.bind_address = "127.0.0.1"
        settings.disable_auto_negotiation = True
        settings.enable_ice_tcp = "tcp" in codecs.split(",")
        self.connection = rtc.PeerConnection(settings)
        self.connection.on_state_change(self._state_changed)
        self.connection.on_gathering_state_change(self._gathering_changed)
        self.tracks = [self._add(*media) for media in (("video", self._video()), ("audio", self._sound()))]

    def _video(self):
        media = rtc.Description.Video("0", rtc.Description.Direction.RecvOnly)
        add = {"h264": media.add_h264_codec, "h265": media.add_h265_codec, "av1": media.add_av1_codec, "vp9": media.add_vp9_codec}
        for name in self.offered:
            payload_type, _, parameters = VIDEO[name]
            add[name](payload_type, parameters)
        return media

    @staticmethod
    def _sound():
        media = rtc.Description.Audio("1", rtc.Description.Direction.RecvOnly)
        media.add_opus_codec(SOUND)
        return media

    def _add(self, kind, media):
        track = self.connection.add_track(media)
        # Answers the server's reports.
        track.set_media_handler(rtc.RtcpReceivingSession())
        track.on_message(lambda packet: self._came(kind, packet))
        return track

    def _state_changed(self, state):
        say("state", state=state.name.lower())
        if state in (rtc.PeerConnection.State.Closed, rtc.PeerConnection.State.Failed, rtc.PeerConnection.State.Disconnected):
            self.over.set()

    def _gathering_changed(self, state):
        if state == rtc.PeerConnection.GatheringState.Complete:
            self.gathered.set()

    def run(self):
        self.connection.set_local_description(rtc.Description.Type.Offer)
        self.gathered.wait(5)
        offer = str(self.connection.local_description())
        say("offered", sdp=offer)
        status, headers, text = call("POST", self.url, offer, "application/sdp")
        self.location = headers.get("Location")
        say("answered", status=status, location=self.location, etag=headers.get("ETag"), text=text)
        if status != 201:
            return
        self.connection.set_remote_description(rtc.Description(text, rtc.Description.Type.Answer))
        threading.Thread(target=self._obey, daemon=True).start()
        while not self.over.wait(0.2):
            say("figures", frames=self.frames, codecs=self.codecs, size=None, longestStep=0, **self.figures)
        for decoder in self.decoders.values():
            decoder.end()
        say("over")

    # --- Media

    def _came(self, kind, packet):
        # RFC 5761 §4: reports come the same way.
        if not isinstance(packet, bytes) or len(packet) < 12 or 192 <= packet[1] <= 223:
            return
        payload_type = packet[1] & 0x7F
        if kind not in self.decoders:
            name, parameters = self._format(payload_type)
            self.codecs[kind] = f"{kind}/{name.partition('/')[0]}"
            self.decoders[kind] = Decoder(self.ffmpeg, kind, payload_type, name, parameters, self.pipes[kind], self._decoded)
        self.decoders[kind].take(packet)
        if kind == "video":
            self._count(int.from_bytes(packet[2:4], "big"), int.from_bytes(packet[4:8], "big"))

    @staticmethod
    def _format(payload_type):
        for number, name, parameters in VIDEO.values():
            if number == payload_type:
                return name, parameters
        return "opus/48000/2", "sprop-stereo=1"

    def _count(self, number, timestamp):
        self.figures["received"] += 1
        if self.last:
            steps = (number - self.last[0]) & 0xFFFF
            if steps < 0x8000:
                self.figures["lost"] += max(0, steps - 1)
            self.figures["backward"] += (timestamp - self.last[1]) & 0xFFFFFFFF >= 0x80000000
        self.last = (number, timestamp)

    def _decoded(self, kind):
        self.frames[kind] += 1
        if self.frames[kind] == 1:
            say("first", kind=kind)

    def _obey(self):
        for line in sys.stdin:
            if line.startswith("leave"):
                status, _, _ = call("DELETE", self.location)
                say("left", status=status)
                time.sleep(0.2)
                self.over.set()


def main():
    Client(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], sys.argv[5]).run()
    # Its threads may wait for ffmpeg.
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
