"""The players, one file each. A player is started with a URL and watched until it is stopped."""

from players.aiortc import WHEPClient
from players.chromium import DocumentedPage, HLSJS14, HLSJS15, HLSJS16, HLSPage, MediaSourcePage, MpegTSJS, WHEPPage
from players.ffmpeg import CurrentFFmpeg, DebianFFmpeg, RTMPDump
from players.firefox import FirefoxPage, FirefoxWHEP
from players.gstreamer import GStreamer
from players.libdatachannel import LibDataChannel
from players.mpv import MPV
from players.vlc import VLC
from players.webrtcbin import WebRTCBin

_ALL = (DebianFFmpeg, CurrentFFmpeg, RTMPDump, GStreamer, VLC, MPV, HLSPage, MediaSourcePage, HLSJS14, HLSJS15, HLSJS16, MpegTSJS)
_ALL += (WHEPClient, WebRTCBin, LibDataChannel, WHEPPage, DocumentedPage, FirefoxWHEP, FirefoxPage)
PLAYERS = {player.name: player for player in _ALL}
