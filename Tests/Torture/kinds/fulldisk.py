"""The disk fills up under the database and the recordings: nothing new begins, what runs goes on, /readyz says so; when there is room again
the server is well, and has all that it ever confirmed."""

import os
import threading
import time

from ledger import Ledger
from media import Publisher, Viewer, unplayable
from server import Failed, Server, check_store
from spaces import SmallDisk
from tools import eventually

MIB = 1 << 20
SETTINGS = {
    "data.minFree": f"{8 * MIB}",
    "recording.apps": "live",
    "recording.minFree": f"{4 * MIB}",
    "recording.fragment": "500ms",
    "recording.splitDuration": "3s",
    "rooms.policy.neverStarted": "12h",
}


def run(context):
    for number in context.each_round():
        folder = context.path(f"round-{number}", "")
        with SmallDisk(os.path.join(folder, "disk"), f"{context.random.randint(40, 90)}m") as disk:
            _Round(context, folder, disk).run()
        context.forget(folder)


class _Round:
    def __init__(self, context, folder, disk):
        self.context, self.folder, self.disk = context, folder, disk
        self.data = os.path.join(disk.folder, "data")
        self.ledger = Ledger(context)
        # The server's data directory, as seen from outside of the namespace.
        self.outside = os.path.join(disk.inside, "data")

    def start(self):
        return Server(self.context.earshot, self.data, SETTINGS, under=self.disk.under, log=os.path.join(self.folder, "server.log"))

    def run(self):
        context = self.context
        with self.start() as server, Publisher(context, f"{server.rtmp}/live/cam1", os.path.join(self.folder, "publisher.log")) as publisher:
            with Viewer(server.http_port, "cam1") as viewer:
                if not context.expect(viewer.sees(20), f"no stream before anything was done: {server.tail()}"):
                    return
                for index in range(1 if context.is_short else 3):
                    stop = threading.Event()
                    threads = self.ledger.work(server, f"r{context.round}-{index}", stop, workers=2, most=40, may_refuse=True)
                    self._short_of_room(server, viewer)
                    self._full(server, viewer)
                    stop.set()
                    for thread in threads:
                        thread.join()
                    self._room_again(server, publisher, viewer, index)
            how = context.random.choice(("killed", "ended", "drained"))
            context.count(how)
            if how == "killed":
                server.kill()
            else:
                # Full at the end, too.
                if how == "drained" or context.random.random() < 0.5:
                    self.disk.fill(0)
                status = self._drained(server, publisher) if how == "drained" else server.terminate()
                context.expect(status == 0, f"the server, {how}, ended with {status}: {server.tail()}")
        self._start_on_full_disk()
        self.disk.empty()
        for problem in check_store(context.earshot, self.data, self.disk.under):
            context.find(f"store check: {problem}")
        context.count("answers", self.ledger.answers)
        context.count("refused changes", sum(self.ledger.refusals.values()))
        with self.start() as server:
            self.ledger.compare(server, where="after a restart: ")
            recordings = server.settled_recordings()
            if context.expect(recordings is not None, "recordings are not finished after 60 s"):
                for problem in unplayable(self.outside, recordings):
                    context.find(problem)

    def _drained(self, server, publisher):
        """The disk is full while the server waits for its push, and when that ends."""
        status, data = server.call("POST", "server/drain", {"timeout": 60})
        self.context.expect(status == 202 and data["pushes"] >= 1, f"a drain on a full disk was answered {status} {data}")
        with Viewer(server.http_port, "cam1") as late:
            self.context.expect(eventually(10, lambda: late.refusals > 0, 0.1) and late.joins == 0, "a viewer was let in during a drain")
        self.context.expect(server.is_running, f"the server did not wait for its push: {server.tail()}")
        publisher.stop()
        return server.ended_by_itself(40)

    def _start_on_full_disk(self):
        """It serves, or says why not."""
        self.disk.fill(0)
        try:
            with self.start() as server:
                self.context.expect(server.answers() == 200, "a server that was started on a full disk answers no health check")
                self.context.expect(server.answers("/readyz") == 503, "a server that was started on a full disk is ready")
                self.context.count("starts on a full disk")
        except Failed as why:
            text = str(why)
            says = "ended with 1" in text and any(word in text for word in ("disk", "space", "full"))
            self.context.expect(says, f"a start on a full disk: {text}")
            self.context.count("refused starts on a full disk")

    def _short_of_room(self, server, viewer):
        """Less than data.minFree."""
        context = self.context
        self.disk.fill(5 * MIB)
        said = eventually(10, lambda: server.answers("/readyz") == 503, 0.2)
        context.expect(said, f"/readyz does not say that {self.disk.free} bytes are left")
        status, data = server.call("POST", "rooms", {"roomId": f"none-{time.monotonic_ns()}"})
        context.expect(status == 507 and data["error"]["rule"] == "disk_full", f"a room on a short disk was answered {status} {data}")
        context.expect(viewer.sees(10), "the stream does not go on while the disk is short of room")

    def _full(self, server, viewer):
        """Not a byte."""
        context = self.context
        end = time.monotonic() + (1.5 if context.is_short else context.random.uniform(2, 15))
        while time.monotonic() < end:
            self.disk.fill(0)
            time.sleep(0.2)
        context.expect(server.answers("/readyz") == 503, "/readyz is well on a full disk")
        context.expect(server.answers() == 200, "no health check on a full disk")
        context.expect(viewer.sees(10), "the stream does not go on while the disk is full")
        context.expect(server.is_running, f"the server ended: {server.tail()}")

    def _room_again(self, server, publisher, viewer, index):
        context = self.context
        self.disk.empty()
        ready = eventually(30, lambda: server.answers("/readyz") == 200, 0.2)
        context.expect(ready, f"/readyz is not well 30 s after there is room again: {server.request('GET', '/readyz')}")
        publisher.keep()
        context.expect(viewer.sees(20), "the stream does not go on after there is room again")
        done = self.ledger.work_on_one(server, f"after-{context.round}-{index}", may_refuse=True)
        context.expect(done, "rooms cannot be changed after there is room again")
        self.ledger.compare(server)
        # Streams pushed from now on are recorded.
        name = f"late{index}"
        with Publisher(context, f"{server.rtmp}/live/{name}", os.path.join(self.folder, "publisher.log")):
            recorded = eventually(20, lambda: any(item["name"] == name and item["bytes"] > 0 for item in server.recordings()), 0.2)
            context.expect(recorded, "a new stream is not recorded after there is room again")
