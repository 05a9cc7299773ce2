"""kill -9 at seeded moments while rooms change and streams are recorded; each start finds what was answered, and the recordings whole."""

import datetime
import os
import shutil
import signal
import threading
import time

from ledger import Ledger
from media import Publisher, fragments, packets, packets_of, recorded_files
from server import Server, check_store
from tools import eventually

from processes import Process

SETTINGS = {"recording.apps": "live", "recording.fragment": "500ms", "recording.minFree": "0B", "rooms.policy.neverStarted": "12h"}
# Kills of one data directory.
LIFETIME = 100
# Seconds of a fragment, and what a busy machine may add before its media reaches the server.
FRAGMENT, PATIENCE = 0.5, 4.0


def run(context):
    life = None
    for number in context.each_round():
        if life is None or life.kills >= LIFETIME:
            if life:
                life.close()
            life = _Life(context, number)
        life.round(number)
    if life:
        life.close()


class _Life:
    """One data directory and its kills."""

    def __init__(self, context, number):
        self.context = context
        self.folder = context.path(f"life-{number}", "data")
        self.ledger = Ledger(context)
        self.kills = 0
        # The files' content when the server was killed: (packets of pictures, whole fragments).
        self.left = {}
        # By stream, on the clock of the wall.
        self.killed_at = {}

    def _start(self):
        return Server(self.context.earshot, self.folder, SETTINGS)

    def round(self, number):
        random = self.context.random
        # Every third kill waits for a recording to have begun.
        records = number % 3 == 0
        if number % 4 == 1 and self.kills:
            self._kill_early()
        moment = random.uniform(0.2, 2.5) if records else random.uniform(0.02, 0.5)
        with self._start() as server:
            stop = threading.Event()
            if self.kills:
                self._look_back(server)
            with Publisher(self.context, f"{server.rtmp}/live/cam{number}", os.path.join(os.path.dirname(self.folder), "publisher.log")):
                threads = self.ledger.work(server, f"k{number}", stop, workers=3, most=30)
                if records:
                    begun = eventually(20, lambda: any(f"/cam{number}/" in path for path in recorded_files(self.folder)))
                    self.context.expect(begun, f"nothing of cam{number} is recorded after 20 s: {server.tail()}")
                backup = self._begin_backup(number) if number % 5 == 2 else None
                stop.wait(moment)
                self.context.expect(server.is_running, f"the server ended by itself: {server.tail()}")
                self.killed_at[f"cam{number}"] = time.time()
                server.kill()
            stop.set()
            for thread in threads:
                thread.join()
        if backup:
            self._look_at_backup(backup)
        self.kills += 1
        for problem in check_store(self.context.earshot, self.folder):
            self.context.find(f"store check after the kill: {problem}")
        self._look_at_files(number)

    def _kill_early(self):
        """While it starts: reads the store, finishes the last run's recordings."""
        for _ in range(self.context.random.randint(1, 3)):
            words = [self.context.earshot, "serve", "--rtmp", "127.0.0.1:0", "--http", "127.0.0.1:0", "--data", self.folder]
            early = Process(words, os.path.join(os.path.dirname(self.folder), "early.log"))
            time.sleep(self.context.random.uniform(0.005, 0.6))
            self.context.expect(early.is_running, f"a start after a kill ended: {early.text()[-500:]}")
            early.stop(signal.SIGKILL)
            self.context.count("killed starts")

    def _begin_backup(self, number):
        """Beside the running server, and its end."""
        folder = os.path.join(os.path.dirname(self.folder), f"backup-{number}")
        words = [self.context.earshot, "store", "backup", folder, "--data", self.folder]
        return folder, Process(words, os.path.join(os.path.dirname(self.folder), "backup.log"))

    def _look_at_backup(self, backup):
        folder, process = backup
        status = process.popen.wait(60)
        there = os.path.exists(folder)
        # It may have met the kill; whole or not at all.
        self.context.expect(there == (status == 0), f"a backup ended with {status}, and its folder is {'there' if there else 'not there'}")
        if there:
            self.context.count("backups")
            for problem in check_store(self.context.earshot, folder):
                self.context.find(f"store check of the backup {folder}: {problem}")
            shutil.rmtree(folder)

    def _look_at_files(self, number):
        """As the kill has left them."""
        for path in recorded_files(self.folder):
            if f"/cam{number}/" not in path:
                continue
            with open(path, "rb") as file:
                content = file.read()
            try:
                found = packets_of(content, path + ".scratch").get("video", [])
            except ValueError as error:
                self.context.find(f"{path} as the kill left it: {error}")
                continue
            self.left[path] = (len(found), fragments(content)[0])

    def _look_back(self, server):
        """Checks, by the next server, the store and the recordings that the last kill left."""
        self.ledger.compare(server)
        recordings = server.settled_recordings()
        if not self.context.expect(recordings is not None, "recordings are not finished after 60 s"):
            return
        by_path = {os.path.join(self.folder, "recordings", item["file"]): item for item in recordings}
        self.context.count("recordings", len(self.left))
        self.ledger.compare_recordings(server.events(), recordings)
        for path, (count, whole) in self.left.items():
            item = by_path.get(path)
            if not self.context.expect(item, f"{path} is in no list"):
                continue
            if not whole:
                continue
            if not self.context.expect(item["state"] == "finished", f"{path} has {whole} whole fragments and is {item['state']}"):
                continue
            try:
                now = len(packets(path).get("video", []))
            except ValueError as error:
                self.context.find(f"{path}, finished: {error}")
                continue
            self.context.expect(now == count, f"{path} had {count} pictures in whole fragments, and has {now} now that it is finished")
        for item in recordings:
            reason = item["reason"]
            if item["state"] == "finished" and item["name"] in self.killed_at:
                began = datetime.datetime.fromisoformat(item["startedAt"]).timestamp()
                lost = self.killed_at[item["name"]] - began - item["duration"]
                self.context.expect(lost < FRAGMENT + PATIENCE, f"recording {item['recordingId']} lacks its last {lost:.1f} s")
            known = reason in ("server_restart", "stream_ended") if item["state"] == "finished" else reason in ("empty", "server_restart")
            self.context.expect(known, f"recording {item['recordingId']} is {item['state']} for {reason}")
        self.left = {}

    def close(self):
        """The last look, and a clean end."""
        with self._start() as server:
            self._look_back(server)
            status = server.terminate()
            self.context.expect(status == 0, f"SIGTERM ended the server with {status}: {server.tail()}")
        for problem in check_store(self.context.earshot, self.folder):
            self.context.find(f"store check after the end: {problem}")
        self.context.count("answers", self.ledger.answers)
        if not self.context.findings:
            self.context.forget(os.path.dirname(self.folder))
