"""Firefox, on a screen. Debian's has no H.264 for WebRTC, which Mozilla's own would download; what it plays otherwise comes from FFmpeg's libraries."""

import json
import os
import shutil

from players.chromium import DocumentedPage, WHEPPage
from processes import own_like

# It asks nothing, calls nobody, and plays by itself.
_SETTINGS = {
    "app.normandy.enabled": False,
    "app.update.enabled": False,
    "browser.aboutwelcome.enabled": False,
    "browser.shell.checkDefaultBrowser": False,
    "browser.startup.homepage_override.mstone": "ignore",
    "datareporting.policy.dataSubmissionEnabled": False,
    "extensions.getAddons.cache.enabled": False,
    "media.autoplay.blocking_policy": 0,
    "media.autoplay.default": 0,
    "media.gmp-manager.updateEnabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "toolkit.telemetry.reportingpolicy.firstRun": False,
}


class _Firefox:
    """What pages in Firefox are started by."""

    @classmethod
    def missing(cls, tools):
        return None if shutil.which("firefox-esr") else "firefox-esr is not installed"

    def _browser(self, profile, address):
        folder = os.path.join(profile, "data")
        os.makedirs(folder)
        with open(os.path.join(folder, "user.js"), "w", encoding="utf-8") as file:
            for name, value in _SETTINGS.items():
                file.write(f"user_pref({json.dumps(name)}, {json.dumps(value)});\n")
        own_like(profile, folder)
        return ["firefox-esr", "--no-remote", "--kiosk", "--profile", folder, address]


class FirefoxWHEP(_Firefox, WHEPPage):
    """The page for WHEP."""

    name = "whepFirefox"


class FirefoxPage(_Firefox, DocumentedPage):
    """docs/player.html, which falls back to MediaSource where the browser has no H.264 for WebRTC."""

    name = "firefoxPage"
