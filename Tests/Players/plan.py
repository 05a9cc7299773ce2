"""Which player plays what, and how soon and how near to live it has to."""

import dataclasses

RTMP_PLAYERS = ("ffmpeg", "ffmpeg-new", "rtmpdump", "gstreamer", "vlc", "mpv")
# By their addresses: segments of fragmented MP4, and of MPEG-TS.
HLS = ("hls", "hls-ts", "page-hls", "page-hls-ts")
WHEP_PLAYERS = "whepAiortc whepChromium"
SCRIPT_PLAYERS = ("hls.js-1.4", "hls.js-1.5", "hls.js-1.6", "mpegts.js")


@dataclasses.dataclass(frozen=True)
class Case:
    """One player with one stream. A value."""

    player: str
    protocol: str
    shape: str
    # join: the stream runs. early: it runs, and has just had a keyframe. before: the player waits for it. return: its device drops and is back after 5 s. cut: the server ends the
    # player's session. asleep: the player's machine sleeps for 8 s. stay: it plays for longer than a group of pictures lasts. loss: its network loses packets. narrow: its network takes little more than the sound for a while. tcp: its network lets no UDP through. refused: it cannot play. unsupported: the player lacks the codec.
    scene: str = "join"
    server: str = "earshot"
    # With a stream of its own, that no player has asked for before.
    is_cold: bool = False

    @property
    def name(self):
        # What plays by WHEP says so in its name.
        parts = [self.player, *[self.protocol.removeprefix("page-")] * (not self.player.startswith("whep")), self.shape, self.scene]
        parts += [self.server] if self.server != "earshot" else []
        return "/".join(parts)

    @property
    def push(self):
        """Cases with the same one share a push, one after the other; None: it needs one of its own."""
        if self.is_cold or self.scene not in ("join", "stay", "loss", "narrow", "tcp", "unsupported") or self.shape in ("late-audio", "wrap-2^32", "two-sizes"):
            return None
        return (self.server, self.shape)


@dataclasses.dataclass(frozen=True)
class Bounds:
    """Seconds: to the first picture, and from the device's lens to the screen once it plays evenly."""

    first: float
    age: float


# For a machine with two busy cores. Over RTMP and FLV players keep a second or so by themselves (VLC: network-caching) and start with the last
# keyframe; HLS players that know nothing of low latency start three segments of 2 s before the end.
_LIVE = {"vlc": Bounds(5, 4), "mpv": Bounds(5, 4)}
_HLS = {"vlc": Bounds(8, 12), "chromium": Bounds(8, 10)}
# They know low latency; they and the browser take some seconds to start.
SCRIPTS = {"hls.js-1.4": Bounds(6, 4), "hls.js-1.5": Bounds(6, 4), "hls.js-1.6": Bounds(6, 4), "mpegts.js": Bounds(5, 2.5)}
_MP4 = {"vlc": Bounds(6, 6), "mpv": Bounds(5, 4)}
# FLV may bring the other kind at any time: ffmpeg waits 5 s for it and gstreamer 6, before either shows anything, whatever the server (the same
# with nginx-rtmp, and with a file through a pipe). mpv stays behind by that, and VLC by as much again.
_ONE_KIND = {None: (6, 0), "mpv": (5, 5), "vlc": (11, 11)}
# And FFmpeg looks for the rate of pictures for three seconds or more where there is none.
_NO_RATE = {None: (3, 0), "gstreamer": (0, 0), "mpv": (3, 3), "vlc": (3, 3)}


@dataclasses.dataclass(frozen=True)
class WHEPBounds:
    """Of players by WHEP: seconds from the offer to the first picture, the age in seconds of the picture that is shown so many seconds after the offer, for
    how many the picture may stand still, and the share of the sound that is its tone. A value."""

    first: float
    age: float
    age_at: float = 1
    still: float = 1.5
    clean: float = 0.95


# A packet that is lost again when it is repeated costs a player as long as it waits before it asks again; in a handshake of DTLS that is a second.
WHEP_BOUNDS = {"join": WHEPBounds(1, 0.6), "return": WHEPBounds(1, 0.6, still=7), "loss": WHEPBounds(4, 1, age_at=4, still=2, clean=0.5)}
WHEP_BOUNDS["tcp"] = WHEPBounds(2, 0.6, age_at=2)
WHEP_BOUNDS["narrow"] = WHEPBounds(1, 0.6, still=90)


def whep_bounds(case):
    """The bounds of a case by WHEP."""
    found = WHEP_BOUNDS.get(case.scene, WHEP_BOUNDS["join"])
    # ffmpeg decodes for it, and looks at a second of packets first.
    return dataclasses.replace(found, first=3, age_at=3) if case.player == "whepLibdatachannel" else found


def bounds(case, shape):
    """The bounds that a case must keep."""
    if case.protocol in ("rtmp", "flv"):
        found = _LIVE.get(case.player, Bounds(3, 1.5))
        if shape.name == "camera":
            found = Bounds(found.first, 3)
        # A player that does not catch up stays behind by the time since the keyframe that it began with.
        if shape.gop_seconds > 2 and case.player in _LIVE:
            found = Bounds(found.first, found.age + shape.gop_seconds)
        if shape.lacks_a_kind:
            first, age = _ONE_KIND.get(case.player, _ONE_KIND[None])
            found = Bounds(found.first + first, found.age + age)
        if shape.is_variable:
            first, age = _NO_RATE.get(case.player, _NO_RATE[None])
            found = Bounds(found.first + first, found.age + age)
    elif case.player in SCRIPT_PLAYERS:
        found = SCRIPTS[case.player]
    elif case.protocol in HLS:
        found = _HLS.get(case.player, Bounds(6, 10))
        # It gets three groups before it starts.
        if case.player == "vlc" and case.is_cold:
            found = Bounds(3 * max(2, shape.gop_seconds) + 2, found.age)
        # Segments are as long as the groups then.
        if shape.gop_seconds > 2:
            found = Bounds(found.first + shape.gop_seconds, found.age + 3 * shape.gop_seconds)
    elif case.player == "whepPage":
        found = Bounds(6, 0.6)
    elif case.protocol == "page-ws":
        found = Bounds(6, 2.5)
    elif case.protocol == "whep":
        # From the program's start, which is most of it.
        found = Bounds(9 if case.scene == "loss" else 6, {"loss": 1.5, "narrow": 2}.get(case.scene, 0.6))
    else:
        found = _MP4.get(case.player, Bounds(4, 2))
        if shape.gop_seconds > 2 and case.player in _MP4:
            found = Bounds(found.first, found.age + shape.gop_seconds)
    return found


def least_rate(case, player):
    """The share of the pictures that a player has to show. VLC that begins too soon with HLS shows four of five, for good."""
    return 0.92 if case.player == "vlc" and case.is_cold else player.least_rate


# Beside nginx-rtmp: no later than it, and no further behind but for the half group that a join starts in, of which nginx shows nothing.
MARGIN_FIRST, MARGIN_AGE = 0.5, 0.5


def margins(shape):
    return Bounds(MARGIN_FIRST, MARGIN_AGE + shape.gop_seconds / 2)


_PROTOCOL = {"chromium": "page-hls", "page": "page-ws", "rtmpdump": "rtmp", "mpegts.js": "page-flv", "whepAiortc": "whep", "whepChromium": "whep", "whepPage": "page-ws"}
_PROTOCOL |= {"whepGStreamer": "whep", "whepLibdatachannel": "whep", "whepFirefox": "whep", "firefoxPage": "page-ws"}
_PROTOCOL |= {player: "page-hls" for player in SCRIPT_PLAYERS if player.startswith("hls")}


def _cases(shape, text, **more):
    """ "vlc:rtmp,flv mpv:hls" → cases."""
    out = []
    for word in text.split():
        player, _, protocols = word.partition(":")
        protocols = protocols.split(",") if protocols else [_PROTOCOL[player]]
        out += [Case(player, protocol, shape, **more) for protocol in protocols]
    return out


def full_plan():
    """All cases."""
    plan = [Case("chromium", "page-hls", "plain", is_cold=True), Case("vlc", "hls", "plain", is_cold=True), Case("vlc", "hls", "gop-4", is_cold=True)]
    plan += _cases("plain", "ffmpeg:rtmp,flv,hls,mp4 ffmpeg-new:rtmp,flv,hls,mp4 rtmpdump gstreamer:rtmp,flv,hls,mp4")
    plan += _cases("plain", "vlc:rtmp,flv,hls,mp4 mpv:rtmp,flv,hls,mp4 chromium page")
    plan += _cases("b-frames", "ffmpeg:rtmp,flv,hls,mp4 gstreamer:rtmp vlc:rtmp,flv mpv:rtmp,hls chromium page")
    plan += _cases("audio-only", "ffmpeg:rtmp,flv,hls,mp4 ffmpeg-new:rtmp gstreamer:rtmp page")
    plan += _cases("video-only", "ffmpeg:rtmp,flv,mp4 gstreamer:flv vlc:rtmp,flv mpv:rtmp,hls chromium page")
    plan += _cases("late-audio", "ffmpeg:rtmp vlc:rtmp mpv:rtmp page")
    plan += _cases("mono-44100", "ffmpeg:rtmp vlc:flv mpv:hls chromium page")
    plan += _cases("hevc-opus", "ffmpeg-new:rtmp,flv,hls,mp4 vlc:hls mpv:hls")
    plan += _cases("av1-opus", "ffmpeg-new:rtmp,flv,hls,mp4 vlc:hls mpv:hls chromium page")
    plan += _cases("gop-10", "ffmpeg:rtmp,flv ffmpeg-new:rtmp rtmpdump gstreamer:rtmp vlc:rtmp mpv:rtmp ffmpeg-new:mp4 chromium page")
    plan += _cases("20-mbit", "ffmpeg:rtmp,flv,hls,mp4 vlc:rtmp mpv:flv page")
    plan += _cases("variable", "ffmpeg:rtmp vlc:flv mpv:rtmp chromium page")
    plan += _cases("wrap-2^32", "ffmpeg:rtmp,flv,hls vlc:rtmp,flv mpv:rtmp chromium page")
    plan += _cases("two-sizes", "ffmpeg:rtmp,flv,mp4 gstreamer:rtmp vlc:rtmp mpv:rtmp chromium page")
    plan += _cases("plain", "ffmpeg:rtmp,flv,hls,mp4 ffmpeg-new:rtmp rtmpdump gstreamer:rtmp vlc:rtmp,flv mpv:rtmp,hls chromium page", scene="before")
    plan += _cases("plain", "ffmpeg:rtmp,flv,mp4 gstreamer:rtmp vlc:hls,mp4 mpv:rtmp,hls chromium page", scene="return")
    plan += _cases("camera", "vlc:rtmp,flv mpv:rtmp") + _cases("camera", "vlc:rtmp,flv mpv:rtmp", scene="return")
    plan += [Case("page", "page-ws", "plain", scene) for scene in ("cut", "asleep")]
    plan += _cases("obs", "ffmpeg:rtmp vlc:flv mpv:rtmp chromium page")
    scripts = " ".join(SCRIPT_PLAYERS)
    # The first viewer of each: what is in the playlist then is made of the pictures so far.
    for shape in ("plain", "video-only", "gop-4", "gop-4-silent", "gop-8.3", "gop-8.3-silent"):
        plan += _cases(shape, scripts, is_cold=True)
    plan += _cases("gop-8.3", "chromium", scene="early", is_cold=True)
    plan += _cases("plain", scripts, scene="return") + _cases("late-audio", scripts) + _cases("two-sizes", scripts)
    plan += _cases("plain", "ffmpeg:hls-ts gstreamer:hls-ts vlc:hls-ts mpv:hls-ts chromium:page-hls-ts hls.js-1.6:page-hls-ts")
    plan += _cases("plain", "vlc:hls-ts", scene="return")
    plan += _cases("mp3", f"{scripts} chromium page ffmpeg:rtmp")
    plan += _cases("gop-20", "page", scene="stay")
    plan += _cases("plain", WHEP_PLAYERS) + _cases("gop-10", WHEP_PLAYERS) + _cases("camera", WHEP_PLAYERS, scene="loss")
    plan += _cases("two-sizes", WHEP_PLAYERS) + _cases("b-frames", WHEP_PLAYERS) + _cases("hevc-opus", "whepAiortc", scene="refused") + _cases("video-only", "whepChromium")
    plan += _cases("audio-only", WHEP_PLAYERS) + _cases("late-audio", WHEP_PLAYERS) + _cases("wrap-2^32", "whepChromium") + _cases("mp3", "whepAiortc")
    plan += _cases("pcmu", WHEP_PLAYERS) + _cases("opus", "whepChromium") + _cases("obs-no-b", "whepChromium")
    plan += [case for scene in ("before", "return") for case in _cases("plain", WHEP_PLAYERS + " whepPage", scene=scene)]
    plan += _cases("plain", "whepPage") + _cases("b-frames", "whepPage")
    plan += [case for shape in ("plain", "two-sizes", "audio-only") for case in _cases(shape, "whepGStreamer")]
    plan += _cases("plain", "whepGStreamer", scene="return") + _cases("camera", "whepGStreamer", scene="loss")
    plan += [case for shape in ("plain", "audio-only", "b-frames", "hevc-opus", "av1-opus", "vp9-opus") for case in _cases(shape, "whepLibdatachannel")]
    plan += [case for shape in ("av1-opus", "vp9-opus", "hevc-b") for case in _cases(shape, "whepChromium")]
    plan += _cases("vp9-opus", "whepChromium", scene="return") + _cases("av1-opus", "whepChromium", scene="before") + _cases("hevc-b", "whepAiortc")
    plan += _cases("plain", "whepLibdatachannel", scene="return") + _cases("camera", "whepChromium", scene="tcp")
    plan += _cases("camera", "whepChromium", scene="narrow")
    plan += _cases("whip", "ffmpeg-new:rtmp,flv,hls,mp4 vlc:hls hls.js-1.6 " + WHEP_PLAYERS) + _cases("whip", "whepChromium", scene="return")
    plan += _cases("whip-page", "ffmpeg-new:rtmp,hls " + WHEP_PLAYERS)
    plan += _cases("plain", "whepFirefox", scene="unsupported") + _cases("plain", "firefoxPage")
    plan += _cases("audio-only", "ffmpeg:rtmp", server="nginx-rtmp")
    plan += _cases("video-only", "ffmpeg:rtmp vlc:rtmp", server="nginx-rtmp")
    plan += _cases("variable", "ffmpeg:rtmp mpv:rtmp", server="nginx-rtmp")
    for shape in ("plain", "gop-10"):
        plan += _cases(shape, " ".join(player if player == "rtmpdump" else f"{player}:rtmp" for player in RTMP_PLAYERS), server="nginx-rtmp")
    return plan


def ci_plan():
    """31 telling cases, in about eight minutes."""
    return [
        Case("chromium", "page-hls", "plain", is_cold=True),
        *_cases("plain", "ffmpeg:rtmp,flv vlc:rtmp mpv:hls page"),
        Case("vlc", "flv", "camera", scene="return"),
        Case("page", "page-ws", "plain", scene="return"),
        Case("page", "page-ws", "two-sizes"),
        Case("mpv", "rtmp", "plain", scene="before"),
        Case("ffmpeg-new", "rtmp", "hevc-opus"),
        Case("ffmpeg", "rtmp", "obs"),
        Case("page", "page-ws", "gop-20", scene="stay"),
        Case("hls.js-1.6", "page-hls", "gop-4-silent", is_cold=True),
        *_cases("plain", WHEP_PLAYERS),
        *_cases("camera", WHEP_PLAYERS, scene="loss"),
        Case("whepChromium", "whep", "camera", scene="tcp"),
        Case("whepAiortc", "whep", "two-sizes"),
        Case("whepAiortc", "whep", "plain", scene="before"),
        Case("whepChromium", "whep", "plain", scene="return"),
        Case("whepAiortc", "whep", "b-frames"),
        Case("whepGStreamer", "whep", "plain"),
        Case("whepLibdatachannel", "whep", "hevc-opus"),
        Case("whepChromium", "whep", "av1-opus"),
        Case("whepChromium", "whep", "vp9-opus"),
        Case("whepFirefox", "whep", "plain", scene="unsupported"),
        Case("whepAiortc", "whep", "hevc-opus", scene="refused"),
        Case("ffmpeg-new", "rtmp", "whip"),
        Case("whepChromium", "whep", "whip-page"),
    ]


# Listed at the end of a full run, so that nobody looks for them.
NOT_APPLICABLE = (
    ("OBS as a player", "it only pushes here; what it pushes is played by five players"),
    ("chromium, page × RTMP, FLV", "browsers speak neither; mpegts.js plays FLV by MediaSource"),
    ("rtmpdump × FLV, HLS, MP4", "it speaks RTMP only"),
    ("ffmpeg, vlc, mpv of Debian 12 × HEVC, AV1, Opus over RTMP, FLV", "their FFmpeg 5.1 does not know Enhanced RTMP; HLS serves them"),
    ("gstreamer 1.22 × HEVC, AV1, Opus over RTMP, FLV", "its flvdemux does not know Enhanced RTMP"),
    ("firefox × video over WHEP", "Debian's has no H.264 for WebRTC without its download: it is told so, and the documented page falls back"),
    ("firefox × sound over WHEP", "it pairs no loopback address, and tests send nothing elsewhere"),
    ("gstreamer × long groups over WHEP", "1.22's jitter buffer stands for seconds behind a joiner's burst of several"),
    ("libdatachannel × loss, long groups over WHEP", "it asks for no repeats, and here Python reads it: the burst of a joiner may lose a packet"),
    ("chromium, page × HEVC", "Debian's Chromium has no HEVC decoder without a graphics card"),
    ("vlc, mpv, chromium × audio only", "no picture that could tell its age; ffmpeg, gstreamer and the page report the sound"),
    ("nginx-rtmp × HEVC, AV1, HTTP", "it has RTMP for H.264 and AAC only, and HLS by files, which is another kind of thing"),
)
