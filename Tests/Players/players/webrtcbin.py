"""GStreamer's WebRTC: WHEP with libnice, and with its own DTLS and SRTP."""

import os
import subprocess

from players.aiortc import WHEPClient

_CLIENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "webrtcbin_client.py")
# Debian's own, which has GStreamer's modules.
_PYTHON = "/usr/bin/python3"


class WebRTCBin(WHEPClient):
    """webrtcbin_client.py."""

    name = "whepGStreamer"
    # The jitter buffer of 1.22 gives some repaired pictures a later time than those behind them.
    late_repairs = 8

    @classmethod
    def missing(cls, tools):
        check = [_PYTHON, "-c", "import gi; gi.require_version('GstWebRTC', '1.0'); gi.require_version('Nice', '0.1'); from gi.repository import GstWebRTC, Nice"]
        is_there = subprocess.run(check, capture_output=True).returncode == 0
        return None if is_there else f"{_PYTHON} lacks python3-gst-1.0, gir1.2-gst-plugins-bad-1.0 or gir1.2-nice-0.1"

    def _command(self, video, sound):
        return [_PYTHON, "-B", _CLIENT, self.url, video, sound]
