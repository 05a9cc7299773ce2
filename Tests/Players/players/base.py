"""The base of all players: they show pictures, whose clocks are noted as they come."""

import os
import subprocess
import threading
import time

import clockcode
from picture import Picture
from processes import Process
from screens import HEIGHT, WIDTH, Screen


class Player:
    """A player that runs. Subclasses say how it is started and which tracks it sees."""

    name = "?"
    protocols = ()
    # Whether it takes up a track that appears while it plays.
    takes_late_tracks = True
    # Whether a machine may lack it: then its cases are skipped, with the reason.
    may_lack = False
    # How many pictures it may show after newer ones where packets are lost and repaired.
    late_repairs = 0
    # Which part of the pictures it has to show; a busy machine drops some, a player that stands still or begins anew each group most.
    least_rate = 0.4

    def __init__(self, url, folder, shape, tools):
        self.url, self.folder, self.shape, self.tools = url, folder, shape, tools
        self.begin = time.time()
        # (when it was shown, its clock); appended to by the watching thread alone.
        self.pictures = []
        self.sound_begin = None
        self.is_stopping = False
        self.process = None

    @classmethod
    def missing(cls, tools):
        """Why it cannot run on this machine; None when it can."""
        return None

    @property
    def is_running(self):
        return self.process.is_running

    @property
    def first_picture(self):
        """Seconds from the start to the first picture; None before."""
        return self.pictures[0][0] - self.begin if self.pictures else None

    def shown_since(self, at):
        """The pictures that were shown since a wall-clock time: (when, age)."""
        pictures = self.pictures
        first = len(pictures)
        while first and pictures[first - 1][0] >= at:
            first -= 1
        return [(when, clockcode.age_seconds(code, when)) for when, code in pictures[first:]]

    def note(self, code, at):
        """A picture is on the screen. One that stays there is noted once."""
        if not self.pictures or self.pictures[-1][1] != code:
            self.pictures.append((at, code))

    def tracks(self):
        """The tracks that the player sees, as in Shape.tracks, with whatever it sees besides; None when it does not say."""
        raise NotImplementedError

    def picture(self):
        """The picture that it shows now, or None."""
        raise NotImplementedError

    def width(self):
        """How many pixels wide its pictures are now; None when it does not say."""
        return None

    def errors(self):
        """The player's complaints, for a failed case's report."""
        return self.process.text()[-600:] if self.process else ""

    def stop(self):
        self.is_stopping = True
        if self.process:
            self.process.stop(grace=2)

    def _log(self, what="player"):
        return os.path.join(self.folder, f"{what}.log")


class PipePlayer(Player):
    """A player that writes its pictures to a pipe, 320x180 in rgb24, and its sound to another."""

    WIDTH, HEIGHT = 320, 180

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.last = None
        self.sound_bytes = 0
        self.threads = []

    def _start(self, arguments, stdin=subprocess.DEVNULL, stdout=None):
        """`arguments(video_fd, audio_fd)` makes the command."""
        read_video, write_video = os.pipe()
        read_audio, write_audio = os.pipe()
        try:
            self.process = Process(
                arguments(write_video, write_audio), self._log(), stdin=stdin, stdout=stdout, pass_fds=(write_video, write_audio)
            )
        finally:
            os.close(write_video)
            os.close(write_audio)
        for target, pipe in ((self._read_video, read_video), (self._read_audio, read_audio)):
            thread = threading.Thread(target=target, args=(os.fdopen(pipe, "rb", buffering=0),), daemon=True)
            thread.start()
            self.threads.append(thread)

    def _read_video(self, pipe):
        size = self.WIDTH * self.HEIGHT * 3
        with pipe:
            while True:
                frame = bytearray()
                while len(frame) < size:
                    data = pipe.read(size - len(frame))
                    if not data:
                        return
                    frame += data
                at = time.time()
                picture = Picture(self.WIDTH, self.HEIGHT, bytes(frame))
                code = picture.code()
                if code is not None:
                    self.last = picture
                    self.note(code, at)

    def _read_audio(self, pipe):
        with pipe:
            while data := pipe.read(65536):
                self.sound_begin = self.sound_begin or time.time()
                self.sound_bytes += len(data)

    def picture(self):
        return self.last


class ScreenPlayer(Player):
    """A player that shows its pictures on a screen of its own, which is looked at 40 times a second."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        # VLC's window is as large as the picture.
        self.screen = Screen(self.folder, width=max(WIDTH, self.shape.size[0]), height=max(HEIGHT, self.shape.size[1]))
        self.shown = None
        # Without the time that the screen took.
        self.begin = time.time()

    def _watch(self):
        self.watcher = threading.Thread(target=self._look, daemon=True)
        self.watcher.start()

    def _look(self):
        while not self.is_stopping:
            at = time.time()
            code = self.screen.code()
            if code is not None:
                self.note(code, at)
            time.sleep(max(0.0, 0.025 - (time.time() - at)))

    def picture(self):
        return self.screen.picture()

    def stop(self):
        super().stop()
        if hasattr(self, "watcher"):
            self.watcher.join(5)
        self.screen.__exit__()
