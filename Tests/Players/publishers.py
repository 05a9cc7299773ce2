"""Devices: what pushes a stream of some shape to a server."""

import os
import signal
import subprocess
import sys
import threading
import time
from urllib.parse import quote

import shapes
from pages import Pages
from processes import Process, unprivileged

HERE = os.path.dirname(os.path.abspath(__file__))


def clock_source(size, rate, log, is_variable=False, seconds=None):
    """A process whose standard output is raw pictures with the clock."""
    arguments = [sys.executable, os.path.join(HERE, "clock_source.py"), size[0], size[1], rate]
    arguments += ["variable"] if is_variable else []
    arguments += [seconds] if seconds else []
    return Process(arguments, log, stdout=subprocess.PIPE)


class ChromiumPublisher:
    """Pushes by WHIP from a page in Chromium without a screen, until it is stopped."""

    def __init__(self, shape, url, folder, tools, label="push"):
        self.shape = shape
        self.pages = Pages(os.path.join(folder, f"{label}-page.log"))
        self.begin = time.time()
        profile = os.path.join(folder, f"{label}-profile")
        before = unprivileged(profile)
        command = before + ["env", f"HOME={profile}", "chromium", "--headless=new", "--no-sandbox", f"--user-data-dir={profile}/data", "--no-first-run"]
        command += ["--disable-gpu", "--disable-dev-shm-usage", "--autoplay-policy=no-user-gesture-required", "--disable-background-networking"]
        command += ["--disable-component-update", f"{self.pages.url('whip.html')}?url={quote(url, safe='')}"]
        self.process = Process(command, os.path.join(folder, f"{label}-chromium.log"))
        self.processes = [self.process]

    @property
    def is_running(self):
        return self.process.is_running

    def errors(self):
        return f"page: {self.pages.last} " + self.process.text()[-300:]

    def kill(self):
        self.process.stop(first=signal.SIGKILL)
        self.pages.close()

    def stop(self):
        """As a page that ends its session."""
        self.pages.order = "leave"
        time.sleep(0.5)
        self.kill()


class FFmpegPublisher:
    """Pushes a shape until it is stopped: the clock's pictures through ffmpeg, and for crafted shapes through a publisher of our own."""

    def __init__(self, shape, url, folder, tools, label="push"):
        self.shape, self.folder, self.label = shape, folder, label
        self.program = tools.current_ffmpeg if shape.needs_current_ffmpeg else "ffmpeg"
        self.processes = []
        self.is_stopping = False
        self.begin = time.time()
        if shape.is_crafted:
            self._push_crafted(url)
        else:
            self._encode(shape, shape.size, ["-f", "whip" if shape.device == "whip" else "flv", url])

    def _log(self, what):
        return os.path.join(self.folder, f"{self.label}-{what}.log")

    def _encode(self, shape, size, output, stdout=None, seconds=None):
        source = clock_source(size, shape.rate, self._log("clock"), shape.is_variable, seconds) if shape.video else None
        arguments = [self.program, *shapes.encoder_arguments(shape, size)]
        arguments += ["-shortest"] if seconds else []
        encoder = Process(
            [*arguments, "-flush_packets", "1", *output],
            self._log("encoder"),
            stdin=source.popen.stdout if source else subprocess.DEVNULL,
            stdout=stdout,
        )
        if source:
            # Only the encoder reads it: its end must reach the source.
            source.popen.stdout.close()
            self.processes.append(source)
        self.processes.append(encoder)
        return encoder

    def _push_crafted(self, url):
        shape = self.shape
        arguments = [sys.executable, os.path.join(HERE, "rtmp_push.py"), url, shape.offset_ms, round(shape.audio_delay * 1000), shape.hole_ms]
        pusher = Process(arguments, self._log("publisher"), stdin=subprocess.PIPE)
        self.processes.append(pusher)
        pipe = pusher.popen.stdin
        if shape.second_size:
            first = self._encode(shape, shape.size, ["-f", "flv", "-"], stdout=pipe, seconds=shape.second_after)
            threading.Thread(target=self._second_part, args=(first, pipe), daemon=True).start()
        else:
            self._encode(shape, shape.size, ["-f", "flv", "-"], stdout=pipe)
            pipe.close()

    def _second_part(self, first, pipe):
        first.popen.wait()
        second = None if self.is_stopping else self._encode(self.shape, self.shape.second_size, ["-f", "flv", "-"], stdout=pipe)
        pipe.close()
        if second:
            # Children die with the thread that started them (PR_SET_PDEATHSIG).
            second.popen.wait()

    @property
    def is_running(self):
        """Whether the last of the chain, which holds the connection, runs."""
        return self.processes[0 if self.shape.is_crafted else -1].is_running

    def errors(self):
        return "".join(process.text()[-300:] for process in self.processes)

    def kill(self):
        """Ends at once, as a device whose battery is out: nothing is announced."""
        self.is_stopping = True
        for process in reversed(self.processes):
            process.stop(first=signal.SIGKILL)

    def stop(self):
        """Ends as a device does whose user has pressed stop."""
        self.is_stopping = True
        for process in list(self.processes):
            process.stop(grace=2)
