"""Chromium, on a screen: its own HLS player and WebRTC, the page for MediaSource that the documents offer, and players in JavaScript."""

import os
from urllib.parse import quote

import scripts
from pages import Pages, advised
from players.base import ScreenPlayer
from processes import Process, unprivileged


class _Page(ScreenPlayer):
    """A page in Chromium that reports what its video element does."""

    page = "?"
    # Behind the page's address.
    query = ""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.pages = Pages(self._log("page"), self._script())
        profile = os.path.join(self.folder, "profile")
        # As another user than root, to whom the folder belongs then.
        before = unprivileged(profile)
        address = f"{self.pages.url(self.page)}?url={quote(self.url, safe='')}{self.query}"
        command = before + ["env", f"HOME={profile}", f"DISPLAY={self.screen.display}"] + self._browser(profile, address)
        self.process = Process(command, self._log())
        self._watch()

    def _browser(self, profile, address):
        """The browser's command."""
        command = ["chromium", "--kiosk", "--no-sandbox", f"--user-data-dir={profile}/data", "--no-first-run", "--disable-gpu"]
        command += ["--disable-dev-shm-usage", "--mute-audio", "--autoplay-policy=no-user-gesture-required", "--disable-background-networking"]
        command += ["--disable-component-update", "--window-position=0,0", f"--window-size={self.screen.width},{self.screen.height}"]
        # Hides the browser's own bars, which would cover the page.
        return command + ["--test-type", f"--app={address}"]

    def _script(self):
        return None

    def tracks(self):
        last = self.pages.last
        if not last:
            return None
        # The browser names no codecs; that it decodes says that they are right.
        tracks = ["audio ?"] * (last["audioBytes"] > 0) + ["video ?"] * (last["videoBytes"] > 0) + [f"{kind} ?" for kind in last["received"]]
        return sorted(tracks + ["text ?"] * last["textTracks"]) or None

    def width(self):
        return (self.pages.last or {}).get("width") or None

    @property
    def page_begin(self):
        """Seconds from the start to the page's first report; a browser takes long to start on a slow machine. None before."""
        return self.pages.first_at - self.begin if self.pages.first_at else None

    def errors(self):
        last = self.pages.last or {}
        return f"page: {last.get('status', '')} {last.get('error', '')} events: {' '.join(self.pages.events[-30:])}"

    def stop(self):
        super().stop()
        self.pages.close()


class HLSPage(_Page):
    """<video src=….m3u8>, played by the browser itself."""

    name = "chromium"
    protocols = ("page-hls", "page-hls-ts")
    page = "hls.html"


class MediaSourcePage(_Page):
    """docs/player.html, as it stands there, without WebRTC."""

    name = "page"
    protocols = ("page-ws",)
    page = "player.html"
    query = "&by=websocket"


class DocumentedPage(_Page):
    """docs/player.html, which plays by WHEP what it can, and the rest with MediaSource."""

    name = "whepPage"
    protocols = ("page-ws",)
    page = "player.html"


class WHEPPage(_Page):
    """A page that plays by WHEP with what browsers have for WebRTC."""

    name = "whepChromium"
    protocols = ("whep",)
    page = "whep.html"

    @property
    def _rtc(self):
        """What the page notes of its session; see whep.html in pages.py."""
        return (self.pages.last or {}).get("rtc") or {}

    @property
    def sound_bytes(self):
        return self._rtc.get("audio", {}).get("bytes", 0)

    def tracks(self):
        kinds = [kind for kind in ("audio", "video") if self._rtc.get(kind, {}).get("received")]
        return [f"{kind} {self._rtc[kind]['codec'].partition('/')[2].lower()}" for kind in kinds] or None

    def errors(self):
        return f"{super().errors()} {self._rtc}"

    # --- What players by WHEP have

    @property
    def status(self):
        """The answer to its offer: the status; None before."""
        return self._rtc.get("status")

    @property
    def refusal(self):
        """The text of an answer that is a refusal."""
        return self._rtc["refusal"]

    @property
    def offered_at(self):
        """The wall-clock time of its offer."""
        return self._rtc["offered"] / 1000

    @property
    def first_after_offer(self):
        """Seconds from its offer to the first picture."""
        return (self._rtc["shown"] - self._rtc["offered"]) / 1000

    def has_ended(self):
        """Whether its connection is closed, or a track has ended."""
        return any(state in ("ended", "closed", "failed") for state in self._rtc["states"])

    def leave(self):
        """Ends its session by DELETE."""
        self.pages.order = "leave"

    @property
    def left(self):
        """The status of the answer to that; None before."""
        return self._rtc.get("left")

    def heard(self):
        """The tone that it plays now: (Hz, share of the power); None when there is none."""
        return self._rtc.get("tone")

    def quality(self):
        """What came of the packets: requests for repeats (nack) and for keyframes (pli), and how often the picture stood still."""
        figures = dict(self._rtc["video"])
        sound = self._rtc.get("audio", {})
        if figures.get("playout") and sound.get("playout"):
            figures["soundBehindMs"] = round(figures["playout"] - sound["playout"])
        return {name: figure for name, figure in figures.items() if name not in ("codec", "bytes", "playout")} | {"soundLost": sound.get("lost")}


class _ScriptPage(_Page):
    """A page with a player in JavaScript, made as docs/playing.md says."""

    page = "script.html"
    # In those lines.
    call = "?"

    def _script(self):
        return scripts.script(self.name), advised(self.call)


class HLSJS14(_ScriptPage):
    """hls.js 1.4, the light build."""

    name = "hls.js-1.4"
    protocols = ("page-hls", "page-hls-ts")
    call = "new Hls("


class HLSJS15(HLSJS14):
    """hls.js 1.5."""

    name = "hls.js-1.5"


class HLSJS16(HLSJS14):
    """hls.js 1.6."""

    name = "hls.js-1.6"


class MpegTSJS(_ScriptPage):
    """mpegts.js, which plays FLV."""

    name = "mpegts.js"
    protocols = ("page-flv",)
    call = "mpegts.createPlayer("
    # Its MediaSource keeps the tracks that it began with.
    takes_late_tracks = False
