"""Plays a stream by WHEP with GStreamer's webrtcbin: webrtcbin_client.py URL VIDEO_FD SOUND_FD. For Debian's python3 with python3-gst-1.0.

Writes and says what whep_client.py does, which see.
"""

import os
import sys
import threading

import gi

from signalling import call, say

gi.require_version("Gst", "1.0")
gi.require_version("GstSdp", "1.0")
gi.require_version("GstWebRTC", "1.0")
gi.require_version("Nice", "0.1")
from gi.repository import GLib, Gst, GstSdp, GstWebRTC, Nice  # noqa: E402

WIDTH, HEIGHT = 320, 180
TRANSPORT_NUMBER = "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01"
VIDEO = f"application/x-rtp,media=video,encoding-name=H264,payload=102,clock-rate=90000,packetization-mode=(string)1,profile-level-id=(string)42e01f,rtcp-fb-nack=true,rtcp-fb-nack-pli=true,rtcp-fb-transport-cc=true,extmap-4=(string){TRANSPORT_NUMBER}"
SOUND = "application/x-rtp,media=audio,encoding-name=OPUS,payload=111,clock-rate=48000,encoding-params=(string)2"
# Behind the decoder: what the pipes get.
TAILS = {
    "video": "queue name=begin ! videoconvert ! videoscale ! video/x-raw,format=RGB,width={width},height={height} ! fdsink fd={pipe} sync=true",
    "audio": "queue name=begin ! audioconvert ! audioresample ! audio/x-raw,format=S16LE,rate=48000,channels=1 ! fdsink fd={pipe} sync=true",
}


class Client:
    """One session, from the offer to its end. On GLib's loop, but for what pads tell."""

    def __init__(self, url, video, sound):
        self.url = url
        self.pipes = {"video": video, "audio": sound}
        self.frames = {"video": 0, "audio": 0}
        self.codecs = {}
        self.size = self.last_time = None
        self.backward, self.longest_step = 0, 0.0
        self.figures = {"received": 0, "lost": 0, "nack": 0, "pli": 0}
        self.location = self.leaving = None
        self.loop = GLib.MainLoop()
        self.pipeline = Gst.Pipeline.new("whep")
        self.peer = Gst.ElementFactory.make("webrtcbin", "peer")
        self.peer.set_property("bundle-policy", GstWebRTC.WebRTCBundlePolicy.MAX_BUNDLE)
        # The least delay at which a repeat comes in time; 200 ms otherwise.
        self.peer.set_property("latency", 100)
        self.pipeline.add(self.peer)
        # libnice leaves out the loopback by itself; the test's traffic stays there.
        loopback = Nice.Address.new()
        loopback.set_from_string("127.0.0.1")
        self.ice = self.peer.get_property("ice-agent")
        self.ice.get_property("agent").add_local_address(loopback)
        for caps in (VIDEO, SOUND):
            self.peer.emit("add-transceiver", GstWebRTC.WebRTCRTPTransceiverDirection.RECVONLY, Gst.Caps.from_string(caps))
        for index in range(2):
            self.peer.emit("get-transceiver", index).set_property("do-nack", True)
        self.peer.connect("pad-added", self._pad_added)
        self.peer.connect("notify::connection-state", self._state_changed)
        self.peer.connect("on-negotiation-needed", lambda peer: peer.emit("create-offer", None, Gst.Promise.new_with_change_func(self._offered)))
        bus = self.pipeline.get_bus()
        bus.add_signal_watch()
        bus.connect("message::error", self._failed)

    def run(self):
        GLib.io_add_watch(0, GLib.PRIORITY_DEFAULT, GLib.IO_IN | GLib.IO_HUP, self._obey)
        self.pipeline.set_state(Gst.State.PLAYING)
        GLib.timeout_add(200, self._report)
        self.loop.run()
        # The server's goodbye may be faster than its answer.
        if self.leaving:
            self.leaving.join(5)
        self.pipeline.set_state(Gst.State.NULL)
        say("over")

    # --- The offer and its answer

    def _offered(self, promise):
        # The offer lives in the reply.
        reply = promise.get_reply()
        offer = reply.get_value("offer")
        self.peer.emit("set-local-description", offer, None)
        text = offer.sdp.as_text()
        say("offered", sdp=text)
        threading.Thread(target=self._post, args=(text,), daemon=True).start()

    def _post(self, text):
        status, headers, answer = call("POST", self.url, text, "application/sdp")
        self.location = headers.get("Location")
        say("answered", status=status, location=self.location, etag=headers.get("ETag"), text=answer)
        GLib.idle_add(self._answered, status, answer)

    def _answered(self, status, text):
        if status != 201:
            self.loop.quit()
            return
        _, message = GstSdp.SDPMessage.new_from_text(text)
        self.peer.emit("set-remote-description", GstWebRTC.WebRTCSessionDescription.new(GstWebRTC.WebRTCSDPType.ANSWER, message), None)

    def _state_changed(self, *_):
        state = self.peer.get_property("connection-state").value_nick
        say("state", state=state)
        if state in ("closed", "failed"):
            self.loop.quit()

    def _failed(self, _, message):
        error, details = message.parse_error()
        say("error", text=error.message, details=details)

    # --- Media

    def _pad_added(self, _, pad):
        if pad.get_direction() != Gst.PadDirection.SRC:
            return
        caps = pad.get_current_caps().get_structure(0)
        kind = caps.get_string("media")
        self.codecs[kind] = f"{kind}/{caps.get_string('encoding-name').lower()}"
        decoder = Gst.ElementFactory.make("decodebin")
        decoder.connect("pad-added", self._decoded, kind)
        self.pipeline.add(decoder)
        decoder.sync_state_with_parent()
        pad.link(decoder.get_static_pad("sink"))

    def _decoded(self, _, pad, kind):
        tail = Gst.parse_bin_from_description(TAILS[kind].format(width=WIDTH, height=HEIGHT, pipe=self.pipes[kind]), True)
        self.pipeline.add(tail)
        tail.sync_state_with_parent()
        pad.add_probe(Gst.PadProbeType.BUFFER, self._frame, kind)
        pad.link(tail.get_static_pad("sink"))

    def _frame(self, pad, info, kind):
        self.frames[kind] += 1
        if self.frames[kind] == 1:
            say("first", kind=kind)
        if kind == "video":
            seconds = info.get_buffer().pts / Gst.SECOND
            if self.last_time is not None:
                self.backward += seconds <= self.last_time
                self.longest_step = max(self.longest_step, seconds - self.last_time)
            self.last_time = seconds
            caps = pad.get_current_caps().get_structure(0)
            size = (caps.get_int("width")[1], caps.get_int("height")[1])
            if size != self.size:
                self.size = size
                say("size", size=size)
        return Gst.PadProbeReturn.OK

    # --- Figures, and the end

    def _report(self):
        self.peer.emit("get-stats", None, Gst.Promise.new_with_change_func(self._count))
        return True

    def _count(self, promise):
        stats = promise.get_reply()
        for number in range(stats.n_fields()):
            entry = stats.get_value(stats.nth_field_name(number))
            if not isinstance(entry, Gst.Structure) or entry.get_value("type") != GstWebRTC.WebRTCStatsType.INBOUND_RTP:
                continue
            names = {"received": "packets-received", "lost": "packets-lost", "nack": "nack-count", "pli": "pli-count"}
            figures = {name: entry.get_value(of) if entry.has_field(of) else 0 for name, of in names.items()}
            # Pictures have more packets than sound, and it does not say which is which.
            if figures["received"] >= self.figures["received"]:
                self.figures = figures
        say("figures", frames=self.frames, codecs=self.codecs, size=self.size, backward=self.backward, longestStep=self.longest_step, **self.figures)

    def _obey(self, *_):
        line = os.read(0, 100)
        if line.startswith(b"leave"):
            self.leaving = threading.Thread(target=self._leave, daemon=True)
            self.leaving.start()
        return bool(line)

    def _leave(self):
        status, _, _ = call("DELETE", self.location)
        say("left", status=status)


def main():
    Gst.init(None)
    Client(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])).run()


if __name__ == "__main__":
    main()
