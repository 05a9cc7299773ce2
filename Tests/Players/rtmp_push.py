"""Publishes FLV from standard input over RTMP, for what stock encoders do not send: rtmp_push.py URL [OFFSET_MS [MUTE_MS [HOLE_MS]]].

Each tag goes out as it comes. OFFSET_MS is added to the times; sound of the first MUTE_MS is left out, its sequence header
too, which comes when the sound does. Where another FLV header follows the last tag, its times go on from there: an encoder
that was opened anew in one push; its pictures come HOLE_MS later still. Ends with the input, by FCUnpublish and deleteStream.
"""

import os
import socket
import struct
import sys
import threading
from urllib.parse import urlsplit

CHUNK = 60000


def amf_string(text):
    data = text.encode()
    return b"\x02" + struct.pack(">H", len(data)) + data


def amf_number(number):
    return b"\x00" + struct.pack(">d", number)


def amf_object(fields):
    body = b"".join(struct.pack(">H", len(name)) + name.encode() + value for name, value in fields)
    return b"\x03" + body + b"\x00\x00\x09"


AMF_NULL = b"\x05"
# Enhanced RTMP v2: the codecs that this device may send.
FOURCCS = b"\x0a" + struct.pack(">I", 4) + b"".join(amf_string(name) for name in ("hvc1", "av01", "Opus", "mp4a"))


def message(chunk_stream, kind, timestamp, stream, payload):
    """One message, RTMP 1.0 §5.3.1: absolute times always."""
    extended = struct.pack(">I", timestamp) if timestamp >= 0xFFFFFF else b""
    header = bytes([chunk_stream]) + struct.pack(">I", min(timestamp, 0xFFFFFF))[1:] + struct.pack(">I", len(payload))[1:]
    out = [header, bytes([kind]), struct.pack("<I", stream), extended, payload[:CHUNK]]
    for begin in range(CHUNK, len(payload), CHUNK):
        out += [bytes([0xC0 | chunk_stream]), extended, payload[begin : begin + CHUNK]]
    return b"".join(out)


def command(name, transaction, *values, stream=0):
    return message(3, 20, 0, stream, amf_string(name) + amf_number(transaction) + b"".join(values))


class Publisher:
    """One connection that publishes one stream."""

    def __init__(self, url, timeout=10):
        parts = urlsplit(url)
        app, _, name = parts.path.lstrip("/").rpartition("/")
        if not app or not name:
            raise ValueError(f"{url} names no app and stream")
        if parts.query:
            name += "?" + parts.query
        self.name = name
        self.socket = socket.create_connection((parts.hostname, parts.port or 1935), timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.reader = self.socket.makefile("rb")
        # RTMP 1.0 §5.2: the simple handshake.
        self.socket.sendall(b"\x03" + bytes(8) + os.urandom(1528))
        answer = self.reader.read(1 + 1536)
        if len(answer) != 1537 or answer[0] != 3:
            raise ConnectionError("the server does not answer the handshake")
        self.socket.sendall(answer[1:])
        self.reader.read(1536)
        self.send(2, 1, 0, 0, struct.pack(">I", CHUNK))
        url_of_app = f"rtmp://{parts.netloc}/{app}"
        fields = [("app", amf_string(app)), ("type", amf_string("nonprivate")), ("tcUrl", amf_string(url_of_app)), ("fourCcList", FOURCCS)]
        self.command("connect", 1, amf_object(fields))
        self.command("FCPublish", 2, AMF_NULL, amf_string(name))
        self.command("createStream", 3, AMF_NULL)
        self.stream_id = 1
        self.command("publish", 4, AMF_NULL, amf_string(name), amf_string("live"), stream=self.stream_id)
        self._wait_for(b"NetStream.Publish.Start")
        # The server's further messages are read and thrown away; otherwise it would stop.
        threading.Thread(target=self._drain, daemon=True).start()

    def send(self, chunk_stream, kind, timestamp, stream, payload):
        self.socket.sendall(message(chunk_stream, kind, timestamp, stream, payload))

    def command(self, name, transaction, *values, stream=0):
        self.socket.sendall(command(name, transaction, *values, stream=stream))

    def tag(self, kind, timestamp, body):
        timestamp &= 0xFFFFFFFF
        if kind == 18:
            self.send(5, 18, timestamp, self.stream_id, amf_string("@setDataFrame") + body)
        else:
            self.send(4 if kind == 8 else 6, kind, timestamp, self.stream_id, body)

    def close(self):
        self.command("FCUnpublish", 5, AMF_NULL, amf_string(self.name))
        self.command("deleteStream", 6, AMF_NULL, amf_number(self.stream_id))
        self.socket.shutdown(socket.SHUT_WR)

    def _wait_for(self, word):
        seen = b""
        while word not in seen:
            data = self.reader.read1(65536)
            if not data:
                raise ConnectionError("the server closed the connection before the publish began")
            seen = seen[-200:] + data
            for refusal in (b"NetStream.Publish.BadName", b"NetConnection.Connect.Rejected"):
                if refusal in seen:
                    raise ConnectionError(f"the server refused: {refusal.decode()}")
        self.socket.settimeout(None)

    def _drain(self):
        while self.reader.read1(65536):
            pass


def tags(stream):
    """The tags of FLV files that follow each other: (kind, time in ms, body, whether of a later file). Its times go on from the one before."""
    base, last = 0, 0
    head = stream.read(9)
    while True:
        if len(head) < 9:
            return
        if head[:3] == b"FLV":
            if last:
                base = last + 40
            stream.read(4)
            head = stream.read(9)
            continue
        head += stream.read(2)
        size = int.from_bytes(head[1:4], "big")
        body = stream.read(size)
        if len(body) < size or len(stream.read(4)) < 4:
            return
        last = base + (int.from_bytes(head[4:7], "big") | head[7] << 24)
        yield head[0] & 0x1F, last, body, base > 0
        head = stream.read(9)


def main():
    publisher = Publisher(sys.argv[1])
    offset, mute, hole = (int(word) for word in (sys.argv[2:] + ["0", "0", "0"])[:3])
    audio_header = None
    for kind, timestamp, body, is_later in tags(sys.stdin.buffer):
        if is_later and kind == 9:
            timestamp += hole
        if mute and kind == 8:
            if timestamp < mute:
                audio_header = audio_header or body
                continue
            publisher.tag(8, timestamp + offset, audio_header)
            mute = 0
        if mute and kind == 18:
            # It would announce the sound.
            continue
        # Metadata has time 0, and stands for the whole stream.
        publisher.tag(kind, timestamp + offset if kind != 18 else 0, body)
    publisher.close()


if __name__ == "__main__":
    main()
