"""The players, one file each. A player is started with a URL and watched until it is stopped."""

from players.chromium import HLSPage, MediaSourcePage
from players.ffmpeg import CurrentFFmpeg, DebianFFmpeg, RTMPDump
from players.gstreamer import GStreamer
from players.mpv import MPV
from players.vlc import VLC

PLAYERS = {player.name: player for player in (DebianFFmpeg, CurrentFFmpeg, RTMPDump, GStreamer, VLC, MPV, HLSPage, MediaSourcePage)}
