"""SIGSTOP: the server, a viewer or a publisher stands still for a while; streams go on, and the recording has no hole.

What the server holds back while it stands still waits in the sockets of those who send, and is recorded afterwards. A publisher that gave up
meanwhile pushes again, and its recording may lack what came between.
"""

import contextlib
import os
import signal
import time

from media import RATE, Publisher, Viewer, packets
from server import Server
from tools import eventually

from processes import Process

SETTINGS = {"recording.apps": "live", "recording.minFree": "0B", "rooms.policy.neverStarted": "12h", "http.firstWait": "2s"}
# A busy machine lets others wait, too: a viewer that nothing is done to may lack so many seconds of live.
UNDISTURBED = 4.0
VICTIMS = ("server", "viewer", "publisher")


def run(context):
    for number in context.each_round():
        folder = context.path(f"round-{number}", "")
        victim = VICTIMS[number % 3]
        seconds = context.random.uniform(1, 2.5) if context.is_short else context.random.choice((1, 3, 6, 14, 20, 35, 60)) * context.random.uniform(0.8, 1)
        with Server(context.earshot, os.path.join(folder, "data"), SETTINGS) as server:
            _round(context, server, folder, victim, seconds)
        context.count(f"{victim} stopped, s", round(seconds))
        context.forget(folder)


@contextlib.contextmanager
def stopped(pid):
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def _round(context, server, folder, victim, seconds):
    what = f"{victim} stopped for {seconds:.1f} s"
    publisher = Publisher(context, f"{server.rtmp}/live/cam1", os.path.join(folder, "publisher.log"))
    other = Publisher(context, f"{server.rtmp}/live/cam2", os.path.join(folder, "other.log"))
    with publisher, other, Viewer(server.http_port, "cam1") as viewer, Viewer(server.http_port, "cam2") as beside:
        for one in (viewer, beside):
            if not context.expect(one.sees(20), f"no stream before anything was done: {server.tail()}"):
                return
        player = _player(server, folder)
        context.expect(eventually(15, lambda: player.text().count("out_time") > 0), f"ffmpeg does not play: {player.text()[-300:]}")
        beside.watch()
        pid = {"server": server.pid, "viewer": player.popen.pid, "publisher": publisher.pid}[victim]
        with stopped(pid):
            _hold(context, server, seconds, victim, (publisher, other))
        if victim != "server":
            context.expect(beside.gap() < UNDISTURBED, f"{what}: another stream's viewer had nothing for {beside.gap():.1f} s")
        # Clients that were sent away come back.
        end = time.monotonic() + 40
        while time.monotonic() < end:
            publisher.keep()
            other.keep()
            if viewer.sees(1.5):
                break
        context.expect(server.is_running, f"{what}: the server ended: {server.tail()}")
        context.expect(viewer.sees(30), f"{what}: the stream does not go on: {server.tail()}")
        context.expect(beside.sees(30), f"{what}: the other stream does not go on")
        if victim == "server" and publisher.starts == 1:
            # Its connection never broke, and it is not its fault that it is behind.
            before = player.text().count("out_time_ms")
            goes_on = eventually(20, lambda: player.text().count("out_time_ms") > before + 3)
            context.expect(goes_on, f"{what}: a player does not go on: {player.text()[-200:]}, {server.tail()}")
        context.expect(server.answers() == 200, f"{what}: no health check afterwards")
        context.expect(viewer.backward == 0, f"{what}: time went backwards for a viewer")
        publisher.stop()
        other.stop()
        player.stop()
        _look_at_recordings(context, server, what, {"cam1": publisher, "cam2": other})


def _hold(context, server, seconds, victim, publishers):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if victim != "server":
            context.expect(server.answers() == 200, f"no health check while a {victim} stands still")
        for publisher in publishers:
            publisher.keep()
        time.sleep(0.5)


def _player(server, folder):
    command = ["ffmpeg", "-nostdin", "-loglevel", "error", "-progress", "pipe:1", "-y", "-i", f"{server.rtmp}/live/cam1", "-c", "copy"]
    return Process([*command, "-f", "null", "-"], os.path.join(folder, "player.log"))


def _look_at_recordings(context, server, what, publishers):
    """Within one push no more than a few pictures may be missing."""
    def ended():
        found = server.recordings()
        return len({item["name"] for item in found}) == 2 and all(item["state"] not in ("recording", "finishing") for item in found)

    # The room waits for its publisher, and then the recording ends.
    if not context.expect(eventually(60, ended, 0.2), f"{what}: recordings do not end: {[item['state'] for item in server.recordings()]}"):
        return
    for name, publisher in publishers.items():
        files = [item for item in server.recordings() if item["name"] == name]
        for item in files:
            context.expect(item["state"] == "finished", f"{what}: recording of {name} is {item['state']} for {item['reason']}")
            context.expect(item["droppedFrames"] == 0, f"{what}: recording of {name} lacks {item['droppedFrames']} frames")
        if publisher.starts > 1:
            continue
        # A stream that was never interrupted is one file without a hole.
        context.expect(len(files) == 1, f"{what}: {name} is recorded in {len(files)} files, of one push")
        stamps = packets(os.path.join(server.data, "recordings", files[0]["file"])).get("video", [])
        holes = [round(after - before, 2) for before, after in zip(stamps, stamps[1:]) if after - before > 3.5 / RATE]
        context.expect(not holes, f"{what}: the recording of {name} has holes of {holes} s")
