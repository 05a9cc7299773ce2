"""libdatachannel, which OBS and others have for WebRTC: WHEP with its ICE, DTLS and SRTP. ffmpeg decodes."""

import os
import subprocess

from players.aiortc import WHEPClient

_CLIENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "libdatachannel_client.py")


class LibDataChannel(WHEPClient):
    """libdatachannel_client.py."""

    name = "whepLibdatachannel"
    may_lack = True
    @classmethod
    def missing(cls, tools):
        try:
            subprocess.run([*tools.libdatachannel, "-c", "import libdatachannel"], check=True, stderr=subprocess.PIPE, timeout=60)
        except (OSError, subprocess.SubprocessError) as error:
            why = (getattr(error, "stderr", None) or b"").decode(errors="replace").strip().splitlines()
            return f"no Python 3.13 with libdatachannel-py: {(why or [error])[-1]}"
        return None

    def _command(self, video, sound):
        return [*self.tools.libdatachannel, _CLIENT, self.url, video, sound, self.tools.current_ffmpeg, "h264,h265,av1,vp9"]
