"""aiortc, a WebRTC client of its own making in Python: WHEP without a browser."""

import array
import json
import os
import subprocess
import sys
import threading
import time

from players.base import PipePlayer
from tone import tone

_CLIENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "whep_client.py")


class WHEPClient(PipePlayer):
    """whep_client.py, which says what happens in lines of JSON."""

    name = "whepAiortc"
    protocols = ("whep",)
    SOUND_RATE = 48000

    def __init__(self, *arguments):
        super().__init__(*arguments)
        # The last second of it, and when it came.
        self.sound, self.sound_end = bytearray(), 0.0
        # What it has said: the first line of each kind, and the last.
        self.firsts, self.lasts = {}, {}
        read_says, write_says = os.pipe()
        try:
            self._start(self._command, stdin=subprocess.PIPE, stdout=write_says)
        finally:
            os.close(write_says)
        threading.Thread(target=self._listen, args=(os.fdopen(read_says, encoding="utf-8"),), daemon=True).start()

    def _command(self, video, sound):
        return ["env", f"PYTHONPATH={self.tools.aiortc}", "PYTHONDONTWRITEBYTECODE=1", sys.executable, _CLIENT, self.url, video, sound]

    def _listen(self, lines):
        with lines, open(self._log("says"), "w", encoding="utf-8") as log:
            for line in lines:
                log.write(line)
                log.flush()
                said = json.loads(line)
                what = f"first {said['kind']}" if said["what"] == "first" else said["what"]
                self.firsts.setdefault(what, said)
                self.lasts[what] = said

    def _read_audio(self, pipe):
        with pipe:
            while data := pipe.read(65536):
                self.sound_bytes += len(data)
                self.sound_end = time.time()
                self.sound += data
                del self.sound[: max(0, len(self.sound) - 2 * self.SOUND_RATE) & ~1]

    def tracks(self):
        figures = self.lasts.get("figures")
        if not figures:
            return None
        kinds = [kind for kind, count in figures["frames"].items() if count]
        names = {kind: figures["codecs"][kind].partition("/")[2].lower() for kind in kinds}
        return sorted(f"{kind} {'hevc' if name == 'h265' else name}" for kind, name in names.items()) or None

    def width(self):
        return (self.lasts.get("figures", {}).get("size") or [None])[0]

    def errors(self):
        return json.dumps([self.lasts.get(what) for what in ("answered", "state", "figures", "ended", "over")]) + super().errors()

    # --- What players by WHEP have

    @property
    def status(self):
        """The answer to its offer: the status; None before."""
        return self.firsts.get("answered", {}).get("status")

    @property
    def refusal(self):
        """The text of an answer that is a refusal."""
        return self.firsts["answered"]["text"]

    @property
    def offered_at(self):
        """The wall-clock time of its offer."""
        return self.firsts["offered"]["at"]

    @property
    def first_after_offer(self):
        """Seconds from its offer to the first picture."""
        return self.firsts["first video"]["at"] - self.offered_at

    def has_ended(self):
        """Whether its connection is closed, or a track has ended."""
        return any(what in self.firsts for what in ("ended", "over"))

    def leave(self):
        """Ends its session by DELETE."""
        self.process.popen.stdin.write(b"leave\n")
        self.process.popen.stdin.flush()

    @property
    def left(self):
        """The status of the answer to that; None before."""
        return self.lasts.get("left", {}).get("status")

    def heard(self):
        """The tone that it plays now: (Hz, share of the power); None when there is none."""
        found = tone(array.array("h", bytes(self.sound)), self.SOUND_RATE)
        return found if time.time() - self.sound_end < 0.5 else None

    def quality(self):
        """What came of the packets: requests for repeats (nack) and for keyframes (pli), and pictures whose times go back."""
        figures = self.lasts["figures"]
        return {"decoded": figures["frames"]["video"], **{name: figures[name] for name in ("received", "lost", "nack", "pli", "backward")}}
