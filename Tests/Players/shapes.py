"""The kinds of stream that are pushed: what the pictures and the sound are, and how they are sent."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Shape:
    """One kind of stream. A value."""

    name: str
    what: str
    # The codec of each, as ffprobe calls it; None where there is none.
    video: str | None = "h264"
    audio: str | None = "aac"
    size: tuple[int, int] = (320, 180)
    rate: int = 25
    gop_seconds: float = 2
    # Added to the encoder's arguments.
    video_arguments: tuple[str, ...] = ()
    audio_arguments: tuple[str, ...] = ("-ac", "1")
    # Pictures at uneven intervals.
    is_variable: bool = False
    # The sound begins so long after the picture.
    audio_delay: float = 0
    # Added to all times.
    offset_ms: int = 0
    # Between the pictures of the first size and those of the second; sound goes on.
    hole_ms: int = 0
    # After so many seconds the same push goes on with pictures of this size.
    second_size: tuple[int, int] | None = None
    second_after: float = 0
    # Sent by the suite's own publisher: stock encoders do not send it so.
    is_crafted: bool = False
    # The codec by WebRTC, where pictures are encoded anew as another.
    webrtc_video: str | None = None
    # What pushes it: ffmpeg by RTMP, obs, or ffmpeg (whip) and a page in Chromium (whip-page) by WHIP.
    device: str = "ffmpeg"

    @property
    def needs_current_ffmpeg(self):
        return self.video in ("hevc", "av1", "vp9") or self.audio == "opus"

    @property
    def lacks_a_kind(self):
        """Whether it has pictures or sound alone, at first at least."""
        return not self.video or not self.audio or self.audio_delay > 0

    @property
    def tracks(self):
        """The tracks that a player should see: "video h264", "audio aac"; sorted."""
        return sorted([f"audio {self.audio}"] * bool(self.audio) + [f"video {self.video}"] * bool(self.video))


SHAPES = {
    shape.name: shape
    for shape in (
        Shape("plain", "H.264 without B-frames, AAC"),
        Shape(
            "camera",
            "H.264 and AAC of 800 kbit/s",
            # Filled up to the rate, as hardware encoders do. The others are ten times smaller, and VLC reads in blocks of 32 KiB.
            video_arguments=("-b:v", "800k", "-maxrate", "800k", "-minrate", "800k", "-bufsize", "800k", "-x264-params", "nal-hrd=cbr:filler=1"),
        ),
        Shape("b-frames", "H.264 with B-frames, AAC", video_arguments=("-bf", "2")),
        Shape("audio-only", "AAC alone", video=None),
        Shape("video-only", "H.264 alone", audio=None),
        Shape("late-audio", "the sound begins 8 s after the picture", audio_delay=8, is_crafted=True),
        Shape("mono-44100", "AAC, 44.1 kHz mono", audio_arguments=("-ar", "44100", "-ac", "1")),
        Shape("hevc-opus", "HEVC and Opus, Enhanced RTMP", video="hevc", audio="opus"),
        Shape(
            "hevc-b",
            "HEVC with B-frames, AAC",
            video="hevc",
            video_arguments=("-x265-params", "log-level=error:bframes=3:b-adapt=0:rc-lookahead=5"),
            webrtc_video="h264",
        ),
        Shape("av1-opus", "AV1 and Opus, Enhanced RTMP", video="av1", audio="opus"),
        Shape("vp9-opus", "VP9 and Opus, Enhanced RTMP", video="vp9", audio="opus"),
        Shape("gop-10", "a keyframe each 10 s", gop_seconds=10),
        Shape("gop-4", "a keyframe each 4 s", gop_seconds=4),
        Shape("gop-4-silent", "a keyframe each 4 s, no sound", gop_seconds=4, audio=None),
        # What an encoder makes of 250 pictures at 30 a second.
        Shape("gop-8.3", "a keyframe each 8.3 s", gop_seconds=8.3),
        Shape("gop-8.3-silent", "a keyframe each 8.3 s, no sound", gop_seconds=8.3, audio=None),
        # Longer than the page keeps behind the picture.
        Shape("gop-20", "a keyframe each 20 s", gop_seconds=20),
        Shape("mp3", "H.264 and MP3", audio="mp3"),
        Shape("opus", "H.264 and Opus", audio="opus"),
        Shape("pcmu", "H.264 and G.711 of 8 kHz", audio="pcmu"),
        # FFmpeg's WHIP takes Baseline alone.
        Shape(
            "whip",
            "H.264 and Opus, pushed by WebRTC",
            audio="opus",
            video_arguments=("-profile:v", "baseline"),
            audio_arguments=("-ar", "48000", "-ac", "2"),
            device="whip",
        ),
        Shape("whip-page", "H.264 and Opus of a page, pushed by WebRTC", audio="opus", size=(640, 360), device="whip-page"),
        Shape(
            "20-mbit",
            "720p of 20 Mbit/s",
            size=(1280, 720),
            # Filled up to the rate, as hardware encoders do; costs no more to encode.
            video_arguments=("-preset", "ultrafast", "-b:v", "20M", "-maxrate", "20M", "-minrate", "20M", "-bufsize", "20M")
            + ("-x264-params", "nal-hrd=cbr:filler=1"),
        ),
        Shape("variable", "pictures at uneven intervals", is_variable=True),
        # Wraps 12 s after the push began.
        Shape("wrap-2^32", "times that pass 2^32 ms", offset_ms=(1 << 32) - 12_000, is_crafted=True),
        # A keyframe each 250 pictures.
        Shape("obs", "what OBS sends unless it is told otherwise", size=(640, 360), rate=30, gop_seconds=9, device="obs"),
        Shape("obs-no-b", "what OBS sends with an option for x264", size=(640, 360), rate=30, gop_seconds=9, video_arguments=("bframes=0",), device="obs"),
        Shape(
            "two-sizes",
            "320x180, and 640x360 from the 12th second of the same push",
            second_size=(640, 360),
            second_after=12,
            # More than browsers take for none.
            hole_ms=70,
            is_crafted=True,
        ),
    )
}

_H264 = ("-c:v", "libx264", "-preset", "veryfast", "-tune", "zerolatency", "-pix_fmt", "yuv420p")
_HEVC = ("-c:v", "libx265", "-preset", "ultrafast", "-tune", "zerolatency", "-x265-params", "log-level=error:bframes=0", "-pix_fmt", "yuv420p")
_AV1 = ("-c:v", "libsvtav1", "-preset", "12", "-svtav1-params", "pred-struct=1:rtc=1", "-pix_fmt", "yuv420p")
_VP9 = ("-c:v", "libvpx-vp9", "-deadline", "realtime", "-cpu-used", "8", "-lag-in-frames", "0", "-b:v", "400k", "-pix_fmt", "yuv420p")
_VIDEO = {"h264": _H264, "hevc": _HEVC, "av1": _AV1, "vp9": _VP9}
_AUDIO = {
    "aac": ("-c:a", "aac", "-b:a", "64k"),
    "opus": ("-c:a", "libopus", "-b:a", "64k"),
    "mp3": ("-c:a", "libmp3lame", "-b:a", "64k"),
    "pcmu": ("-c:a", "pcm_mulaw", "-ar", "8000"),
}
_COLOUR = ("-colorspace", "bt709", "-color_primaries", "bt709", "-color_trc", "bt709", "-color_range", "tv")


def encoder_arguments(shape, size):
    """ffmpeg's arguments from its inputs to its codecs; raw pictures come from standard input."""
    arguments = ["-nostdin", "-hide_banner", "-loglevel", "warning", "-y"]
    if shape.video:
        # Nothing to guess: a frame is encoded as soon as it is there.
        arguments += ["-fflags", "nobuffer", "-analyzeduration", "0", "-probesize", "32", "-thread_queue_size", "4"]
        arguments += ["-use_wallclock_as_timestamps", "1"] if shape.is_variable else []
        arguments += ["-f", "rawvideo", "-pix_fmt", "yuv420p", "-video_size", f"{size[0]}x{size[1]}", "-framerate", str(shape.rate), "-i", "-"]
    if shape.audio:
        # Paced by the pictures; alone by the clock. The rate of the codec: Opus has 48 kHz only.
        tone = f"sine=440:sample_rate={48000 if shape.audio == 'opus' else 44100}"
        arguments += [] if shape.video else ["-re"]
        arguments += ["-f", "lavfi", "-i", tone]
    if shape.video:
        arguments += ["-map", "0:v", *_VIDEO[shape.video], *_COLOUR, *shape.video_arguments]
        # Keyframes go by the clock, at any rate.
        arguments += ["-g", "1000", "-force_key_frames", f"expr:gte(t,n_forced*{shape.gop_seconds})"]
        arguments += ["-fps_mode", "vfr"] if shape.is_variable else []
    if shape.audio:
        arguments += ["-map", "1:a" if shape.video else "0:a", *_AUDIO[shape.audio], *shape.audio_arguments]
    return arguments
