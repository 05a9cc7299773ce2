"""VLC, with its default settings, on a screen."""

import os
import re

from players.base import ScreenPlayer
from processes import Process, unprivileged


class VLC(ScreenPlayer):
    name = "vlc"
    protocols = ("rtmp", "flv", "hls", "hls-ts", "mp4")
    # FFmpeg's demuxer in it looks for tracks when it opens the stream.
    takes_late_tracks = False
    codecs = {"mp4a": "aac", "opus": "opus", "h264": "h264", "hevc": "hevc", "av01": "av1"}

    def __init__(self, *arguments):
        super().__init__(*arguments)
        home = os.path.join(self.folder, "home")
        # It refuses to run as root.
        command = unprivileged(home) + ["env", f"HOME={home}", f"DISPLAY={self.screen.display}", "vlc", "-vv", "-I", "dummy"]
        # The screen has no graphics card and the machine no loudspeaker.
        command += ["--vout=xcb_x11", "--aout=adummy", "--no-video-title-show", "--no-osd", "--no-video-deco", "--video-x=0", "--video-y=0", self.url]
        self.process = Process(command, self._log())
        self._watch()

    def tracks(self):
        text = self.process.text()
        # The demuxers of FFmpeg's and of VLC's own: the latter adds the tracks of each beginning of the stream, and does not name codecs.
        found = {f"{kind} {self.codecs.get(codec, codec)}" for kind, codec in re.findall(r"demux debug: adding es: (\w+) codec = (\w+)", text)}
        found |= {f"{kind} ?" for kind in re.findall(r"mp4 demux debug: adding track\[Id \w+\] (\w+)", text)}
        in_ts = [self.codecs.get(codec, codec) for codec in re.findall(r"ts demux debug:\s+=> pid \d+ has now es fcc=(\w+)", text)]
        found |= {f"{'video' if codec in ('h264', 'hevc') else 'audio'} {codec}" for codec in in_ts}
        return sorted(found) or None
