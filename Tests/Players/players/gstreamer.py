"""GStreamer: a source for the protocol and decodebin, as live applications build it (uridecodebin would buffer seconds ahead)."""

import re

from players.base import PipePlayer


class GStreamer(PipePlayer):
    name = "gstreamer"
    protocols = ("rtmp", "flv", "hls", "hls-ts", "mp4")
    codecs = {"x-h264": "h264", "x-h265": "hevc", "x-av1": "av1", "mpeg": "aac", "x-opus": "opus"}

    def __init__(self, *arguments):
        super().__init__(*arguments)

        def command(video, audio):
            source = "rtmp2src" if self.url.startswith("rtmp") else "souphttpsrc"
            words = ["gst-launch-1.0", "-v", source, f"location={self.url}", "!", "decodebin", "name=source"]
            if self.shape.video:
                words += ["source.", "!", "queue", "!", "videoconvert", "!", "videoscale", "!"]
                words += [f"video/x-raw,format=RGB,width={self.WIDTH},height={self.HEIGHT}", "!", "fdsink", f"fd={video}", "sync=false"]
            if self.shape.audio:
                words += ["source.", "!", "queue", "!", "audioconvert", "!", "audio/x-raw,format=S16LE", "!", "fdsink", f"fd={audio}", "sync=false"]
            return words

        self._start(command)

    def tracks(self):
        # The pads that lead into decoders; "mpegversion" alone would be MP3's too.
        found = set(re.findall(r"GstMultiQueue:\w+\.GstMultiQueuePad:src_\d+: caps = (\w+)/([\w-]+)", self.process.text()))
        tracks = sorted(f"{kind} {self.codecs.get(codec, codec)}" for kind, codec in found if codec not in ("quicktime", "mpegts"))
        return tracks or None
