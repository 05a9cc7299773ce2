"""The power fails: the server runs with all its writes logged, and is then started on what a disk may hold after each of many moments."""

import bisect
import os
import threading
import time

import disklog
from ledger import Ledger
from media import Publisher, packets, packets_of, unplayable
from server import Failed, Server, check_store
SETTINGS = {
    "recording.apps": "live",
    "recording.fragment": "500ms",
    "recording.splitDuration": "3s",
    "recording.minFree": "0B",
    "rooms.policy.neverStarted": "12h",
}
# SQLite's index of its write-ahead log, which it maps.
INDEX = "earshot.db-shm"
# Moments at which the power of one run fails.
CUTS = 40


def run(context):
    log = None
    for number in context.each_round():
        if log is None or log.cuts >= (CUTS if not context.is_short else context.rounds):
            log = _Run(context, number)
        log.lose_power(number)


class _Run:
    """One logged run of the server, and the disks that could come of it."""

    def __init__(self, context, number):
        self.context = context
        self.cuts = 0
        self.folder = context.path(f"run-{number}")
        os.makedirs(self.folder)
        self.data = os.path.join(self.folder, "data")
        self.ledger = Ledger(context)
        self.first_ns = None
        self.indexes = []
        logs = [self._serve(0, ends_cleanly=False), self._serve(1, ends_cleanly=True)]
        self.records = disklog.read(logs)
        # In order, so that the log is gone through once. The last record may be one.
        wanted = CUTS if not context.is_short else context.rounds
        first = next(index for index, record in enumerate(self.records) if record.time >= self.first_ns)
        early = context.random.sample(range(first), min(first, wanted // 8))
        late = [self._moment(first) for _ in range(wanted - len(early) - 1)]
        self.moments = sorted([*early, *late, len(self.records)])
        self.disk = disklog.Disk(self.data)
        context.count("logged changes", len(self.records))
        context.count("answers", self.ledger.answers)

    def _moment(self, first):
        """Half of them evenly over the changes, most of which are the database's, and half evenly over the time."""
        random = self.context.random
        if random.random() < 0.5:
            return random.randint(first, len(self.records))
        return bisect.bisect(self.records, random.uniform(self.first_ns, self.records[-1].time), key=lambda record: record.time)

    def _serve(self, start, ends_cleanly):
        log = os.path.join(self.folder, f"disk-{start}.log")
        environment = {"LD_PRELOAD": os.path.join(self.context.shims, "disk.so"), "TORTURE_ROOT": self.data, "TORTURE_LOG": log}
        settings = {**SETTINGS, "recording.fsync": self.context.random.choice(("fragment", "fragment", "1s"))}
        with Server(self.context.earshot, self.data, settings, environment) as server:
            self.first_ns = self.first_ns or server.started_ns
            stop = threading.Event()
            seconds = 3.5 if self.context.is_short else self.context.random.uniform(4, 8)
            with Publisher(self.context, f"{server.rtmp}/live/cam{start}", os.path.join(self.folder, "publisher.log")):
                threads = self.ledger.work(server, f"s{start}", stop, workers=2, most=1000, pause=self.context.random.choice((0.03, 0.1)))
                for _ in range(int(seconds / 0.25)):
                    stop.wait(0.25)
                    self.ledger.note_finished(server)
                    self._note_index()
            stop.set()
            for thread in threads:
                thread.join()
            if ends_cleanly:
                server.terminate()
            else:
                server.kill()
        return log

    def _note_index(self):
        """SQLite's index of its log as it is now: the disk may have it, or an older one, or none."""
        with open(os.path.join(self.data, INDEX), "rb") as file:
            self.indexes.append((time.monotonic_ns(), file.read()))

    def _mapped(self, until_ns):
        indexes = [content for at, content in self.indexes if at <= until_ns]
        if not indexes or self.context.random.random() < 0.4:
            return ()
        return ((INDEX, self.context.random.choice(indexes[-6:])),)

    def lose_power(self, number):
        context = self.context
        moment = self.moments[self.cuts]
        self.cuts += 1
        while self.disk.position < moment:
            self.disk.take(self.records[self.disk.position])
        until_ns = self.records[moment - 1].time if moment else 0
        folder = context.path(f"disk-{number}", "data")
        self.disk.lose_power(context.random, folder, self._mapped(until_ns))
        kept = self._kept(number)
        where = f"power failed after record {moment} of {len(self.records)}: "
        try:
            with Server(context.earshot, folder, {"rooms.policy.neverStarted": "12h", "recording.minFree": "0B"}) as server:
                if until_ns >= self.first_ns:
                    context.expect(server.answers("/api/v1/rooms") == 200, f"{where}the token of the first start is no good")
                if server.token and server.answers("/api/v1/rooms") == 200:
                    self._compare(server, until_ns, kept, where)
                status = server.terminate()
                context.expect(status == 0, f"{where}SIGTERM ended the server with {status}")
            for problem in check_store(context.earshot, folder):
                context.find(f"{where}store check: {problem}")
        except (Failed, OSError) as error:
            context.find(f"{where}{error}")
        context.forget(os.path.dirname(folder))

    def _kept(self, number):
        """How many pictures are on the disk for certain, by recording."""
        kept = {}
        for path, content in self.disk.durable(".mp4"):
            try:
                count = len(packets_of(content, os.path.join(self.folder, f"kept-{number}.mp4")).get("video", []))
            except ValueError as error:
                self.context.find(f"{path} as it was synced: {error}")
                continue
            if count:
                kept[path] = count
        return kept

    def _compare(self, server, until_ns, kept, where):
        context = self.context
        self.ledger.compare(server, until_ns, where)
        recordings = server.settled_recordings()
        if not context.expect(recordings is not None, f"{where}recordings are not finished after 60 s"):
            return
        # Data that was not synced may be torn within fragments whose boxes are whole: players complain of such a tail, and play.
        for problem in unplayable(server.data, recordings, is_strict=False):
            context.find(f"{where}{problem}")
        context.count("recordings", len(recordings))
        context.count("synced recordings", len(kept))
        self.ledger.compare_recordings(server.events(), recordings, where)
        by_id = {item["recordingId"]: item for item in recordings}
        for name, (at, duration) in self.ledger.finished.items():
            if at > until_ns:
                continue
            item = by_id.get(name)
            good = item and item["state"] == "finished" and item["duration"] >= duration - 0.1
            if context.expect(good, f"{where}recording {name} was finished with {duration} s, and is {item}"):
                for problem in unplayable(server.data, [item]):
                    context.find(f"{where}{problem}")
        for path, count in kept.items():
            target = os.path.join(server.data, path)
            try:
                now = len(packets(target, is_strict=False).get("video", []))
            except ValueError as error:
                context.find(f"{where}{target}: {error}")
                continue
            context.expect(now >= count, f"{where}{path} had {count} pictures on the disk, and has {now}")
