"""Publishers, viewers, and what is in recordings."""

import contextlib
import functools
import http.client
import os
import struct
import subprocess
import threading
import time

from processes import Process, wait_for
from standstill import Standstill

RATE = 25
# Seconds: shorter gaps are none.
SHORT_GAP = 0.2
# A keyframe each second.
GOP = 25


def make_sample(path, seconds=20):
    """The FLV that all publishers repeat."""
    command = ["ffmpeg", "-nostdin", "-loglevel", "error", "-y", "-f", "lavfi", "-i", f"testsrc=size=320x180:rate={RATE}:duration={seconds}"]
    command += ["-f", "lavfi", "-i", f"sine=440:sample_rate=44100:duration={seconds}", "-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p"]
    command += ["-g", str(GOP), "-bf", "0", "-c:a", "aac", "-b:a", "64k", "-ac", "1", "-f", "flv", path + ".partial"]
    subprocess.run(command, check=True, timeout=120)
    os.rename(path + ".partial", path)


class Publisher:
    """ffmpeg that pushes the sample over and over. Where it ends by itself `again` begins another one."""

    def __init__(self, context, url, log):
        self.context, self.url, self.log = context, url, log
        self.starts = 0
        self.process = None
        self.again()

    def again(self):
        self.starts += 1
        command = ["ffmpeg", "-nostdin", "-loglevel", "warning", "-re", "-stream_loop", "-1", "-i", self.context.sample]
        self.process = Process([*command, "-c", "copy", "-f", "flv", self.url], self.log)

    def keep(self):
        """Pushes again where the push has ended, as devices do."""
        if not self.process.is_running:
            self.again()

    @property
    def pid(self):
        return self.process.popen.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        self.process.stop(grace=3)


@functools.cache
def _machine():
    return Standstill()


class Viewer(threading.Thread):
    """Plays HTTP-FLV, counts what it sees, and comes back when it is sent away. Owned by whoever started it."""

    def __init__(self, port, name, host="127.0.0.1"):
        super().__init__(daemon=True)
        self.host, self.port, self.name_of_stream = host, port, name
        self.tags = 0
        self.joins = 0
        self.refusals = 0
        # From a tag to the next, since `watch`: those that may count.
        self.gaps = []
        # How often time went backwards within one connection.
        self.backward = 0
        self.last_at = time.monotonic()
        self._machine = _machine()
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self.start()

    def run(self):
        while not self._ended.is_set():
            with contextlib.suppress(OSError, http.client.HTTPException, EOFError):
                self._play()
            self._ended.wait(0.2)

    def _play(self):
        connection = http.client.HTTPConnection(self.host, self.port, timeout=5)
        try:
            connection.request("GET", f"/live/{self.name_of_stream}.flv")
            answer = connection.getresponse()
            if answer.status != 200:
                self.refusals += 1
                return
            self.joins += 1
            self._read(answer, 9 + 4)
            last = {}
            while not self._ended.is_set():
                head = self._read(answer, 11)
                kind, size = head[0] & 0x1F, int.from_bytes(head[1:4], "big")
                stamp = int.from_bytes(head[4:7], "big") | head[7] << 24
                self._read(answer, size + 4)
                self._seen()
                if kind in (8, 9):
                    if stamp < last.get(kind, 0):
                        self.backward += 1
                    last[kind] = stamp
        finally:
            connection.close()

    @staticmethod
    def _read(answer, count):
        data = b""
        while len(data) < count:
            more = answer.read(count - len(data))
            if not more:
                raise EOFError
            data += more
        return data

    def _seen(self):
        with self._lock:
            now = time.monotonic()
            if now - self.last_at > SHORT_GAP:
                self.gaps.append((self.last_at, now))
            self.last_at = now
            self.tags += 1

    def watch(self):
        """Gaps count from now on."""
        with self._lock:
            self.gaps = []
            self.last_at = time.monotonic()

    def gap(self):
        """The longest gap since `watch`, the present one included, in seconds; each less what the machine stood still in it."""
        with self._lock:
            gaps = [*self.gaps, (self.last_at, time.monotonic())]
        return max(end - begin - self._machine.within(begin, end) for begin, end in gaps)

    def sees(self, seconds, count=RATE):
        """Whether so many tags more come in time."""
        wanted = self.tags + count
        try:
            wait_for("tags", seconds, lambda: self.tags >= wanted)
        except TimeoutError:
            return False
        return True

    def stop(self):
        self._ended.set()
        self.join(7)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


# MARK: MP4, ISO/IEC 14496-12 §4.2


def boxes(content):
    """The whole boxes at the top: (name, beginning, end)."""
    offset = 0
    while len(content) - offset >= 8:
        size, name = struct.unpack_from(">I4s", content, offset)
        if size == 1 and len(content) - offset >= 16:
            size = struct.unpack_from(">Q", content, offset + 8)[0]
        if size < 8 or offset + size > len(content):
            return
        yield name.decode("latin-1"), offset, offset + size
        offset += size


def fragments(content):
    """How many whole fragments there are, and where the last one ends."""
    count, end, has_index = 0, 0, False
    for name, _, stop in boxes(content):
        if name == "moof":
            has_index = True
        elif name == "mdat" and has_index:
            count, end, has_index = count + 1, stop, False
    return count, end


def packets(path, is_strict=True):
    """The decode times of a file's packets in seconds, by kind of track. Raises ValueError where ffprobe fails, or (strictly) complains."""
    command = ["ffprobe", "-v", "error", "-show_entries", "packet=codec_type,dts_time", "-of", "csv=p=0", path]
    outcome = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if outcome.returncode or (is_strict and outcome.stderr.strip()):
        raise ValueError(f"ffprobe ended with {outcome.returncode}: {outcome.stderr.strip()[:300]}")
    found = {}
    for line in outcome.stdout.split():
        kind, _, stamp = line.partition(",")
        stamp = stamp.rstrip(",")
        if stamp and stamp != "N/A":
            found.setdefault(kind, []).append(float(stamp))
    return found


def packets_of(content, scratch):
    """The same of what a fragmented file held, up to its last whole fragment."""
    count, end = fragments(content)
    if not count:
        return {}
    with open(scratch, "wb") as file:
        file.write(content[:end])
    try:
        return packets(scratch)
    finally:
        os.unlink(scratch)


def recorded_files(data):
    """The MP4 files below a data directory's recordings, as paths."""
    top = os.path.join(data, "recordings")
    return sorted(os.path.join(folder, name) for folder, _, names in os.walk(top) for name in names if name.endswith(".mp4"))


def unplayable(server_data, recordings, is_strict=True):
    """The faults in the files of recordings that the server calls finished."""
    for item in recordings:
        if item["state"] != "finished":
            continue
        path = os.path.join(server_data, "recordings", item["file"])
        try:
            found = packets(path, is_strict)
        except (ValueError, subprocess.TimeoutExpired) as error:
            yield f"{path}, finished, does not play: {error}"
            continue
        if not found.get("video"):
            yield f"{path}, finished, has no pictures"
