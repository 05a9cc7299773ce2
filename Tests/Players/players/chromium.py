"""Chromium, on a screen: its own HLS player, and the page for MediaSource that the documents offer."""

import os
from urllib.parse import quote

from pages import Pages
from players.base import ScreenPlayer
from processes import Process, unprivileged


class _Page(ScreenPlayer):
    """A page in Chromium that reports what its video element does."""

    page = "?"

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.pages = Pages(self._log("page"))
        profile = os.path.join(self.folder, "profile")
        command = unprivileged(profile) + ["env", f"HOME={profile}", f"DISPLAY={self.screen.display}", "chromium", "--kiosk", "--no-sandbox"]
        command += [f"--user-data-dir={profile}/data", "--no-first-run", "--disable-gpu", "--disable-dev-shm-usage", "--mute-audio"]
        command += ["--autoplay-policy=no-user-gesture-required", "--disable-background-networking", "--disable-component-update"]
        command += ["--window-position=0,0", f"--window-size={self.screen.width},{self.screen.height}"]
        # Hides the browser's own bars, which would cover the page.
        command += ["--test-type", f"--app={self.pages.url(self.page)}?url={quote(self.url, safe='')}"]
        self.process = Process(command, self._log())
        self._watch()

    def tracks(self):
        last = self.pages.last
        if not last:
            return None
        # The browser names no codecs; that it decodes says that they are right.
        tracks = ["audio ?"] * (last["audioBytes"] > 0) + ["video ?"] * (last["videoBytes"] > 0)
        return sorted(tracks + ["text ?"] * last["textTracks"]) or None

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
    protocols = ("page-hls",)
    page = "hls.html"


class MediaSourcePage(_Page):
    """docs/player.html, as it stands there."""

    name = "page"
    protocols = ("page-ws",)
    page = "player.html"
