"""ffmpeg, Debian's and a current one, and rtmpdump, whose output ffmpeg decodes."""

import re
import subprocess

from players.base import PipePlayer
from processes import Process


class DebianFFmpeg(PipePlayer):
    """ffmpeg as it is run by default; what ffplay and many players are made of."""

    name = "ffmpeg"
    protocols = ("rtmp", "flv", "hls", "hls-ts", "mp4")
    # Its outputs are laid out when it opens the stream.
    takes_late_tracks = False

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self._decode(self.url)

    def _program(self):
        return "ffmpeg"

    def _decode(self, source, stdin=subprocess.DEVNULL):
        def arguments(video, audio):
            command = [self._program(), "-hide_banner", "-nostats", *([] if source == "-" else ["-nostdin"]), "-i", source]
            if self.shape.video:
                # Each picture as it comes: none repeated, none dropped.
                command += ["-map", "0:v:0", "-vf", f"scale={self.WIDTH}:{self.HEIGHT}", "-fps_mode", "passthrough"]
                command += ["-pix_fmt", "rgb24", "-flush_packets", "1", "-f", "rawvideo", f"pipe:{video}"]
            # A track that comes late is none yet when ffmpeg opens the stream, and it refuses an output of no track.
            if self.shape.audio and not self.shape.audio_delay:
                command += ["-map", "0:a:0", "-ac", "1", "-ar", "8000", "-flush_packets", "1", "-f", "s16le", f"pipe:{audio}"]
            return command

        self._start(arguments, stdin)

    def tracks(self):
        text = self.process.text()
        # The tracks of the input only.
        text = text[text.find("Input #0") :].split("Output #0")[0].split("Stream mapping:")[0]
        found = re.findall(r"Stream #0:\d+.*?: (\w+): (\w+)", text)
        return sorted(f"{kind.lower()} {codec}" for kind, codec in found) if found else None


class CurrentFFmpeg(DebianFFmpeg):
    """The newest ffmpeg that PyPI has."""

    name = "ffmpeg-new"

    def _program(self):
        return self.tools.current_ffmpeg


class RTMPDump(DebianFFmpeg):
    """rtmpdump, which is librtmp: it writes FLV to a pipe."""

    name = "rtmpdump"
    protocols = ("rtmp",)

    def _decode(self, source, stdin=subprocess.DEVNULL):
        self.dump = Process(["rtmpdump", "--live", "--quiet", "-r", source, "-o", "-"], self._log("rtmpdump"), stdout=subprocess.PIPE)
        super()._decode("-", self.dump.popen.stdout)
        # Only the decoder reads it.
        self.dump.popen.stdout.close()

    def stop(self):
        super().stop()
        self.dump.stop(grace=2)
