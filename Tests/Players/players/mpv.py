"""mpv, with its default settings, on a screen."""

import re

from players.base import ScreenPlayer
from processes import Process


class MPV(ScreenPlayer):
    name = "mpv"
    protocols = ("rtmp", "flv", "hls", "hls-ts", "mp4")

    def __init__(self, *arguments):
        super().__init__(*arguments)
        # The screen has no graphics card and the machine no loudspeaker.
        command = ["env", f"DISPLAY={self.screen.display}", "mpv", "--no-config", "--vo=x11", "--ao=null", "--osd-level=0", "--no-osc"]
        command += [f"--geometry={self.screen.width}x{self.screen.height}+0+0", "--no-border", "--force-window=no", "--term-status-msg=", self.url]
        self.process = Process(command, self._log())
        self._watch()

    def tracks(self):
        text = self.process.text()
        # "(+) Video --vid=1 (h264 320x180 25.000fps)"
        found = re.findall(r"(Video|Audio|Subs|Image)\s+--\w+=\d+.*?\(.*?(\w+)[ )]", text)
        kinds = {"Subs": "subtitle"}
        return sorted({f"{kinds.get(kind, kind.lower())} {codec}" for kind, codec in found}) or None
