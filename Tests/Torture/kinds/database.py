"""kill -9 of the PostgreSQL that holds the rooms, of the server, or of both, at seeded moments while rooms change. What was answered is there, and a
database that is away cuts nobody."""

import os
import signal
import threading
import time

from ledger import Ledger
from media import Publisher
from postgres import Database
from server import Server
from tools import eventually

SETTINGS = {"rooms.policy.neverStarted": "12h", "cluster.name": "torture"}
# Seconds from the database's return to the first room made.
CLAIM = 10


def run(context):
    with Database(os.path.dirname(context.path("postgres", "cluster"))) as database:
        life = _Life(context, database)
        for number in context.each_round():
            life.round(number)
        life.look()
        context.count("answers", life.ledger.answers)


class _Life:
    """One database, and the servers on it, one after the other."""

    def __init__(self, context, database):
        self.context, self.database = context, database
        self.folder = context.path("life", "data")
        self.ledger = Ledger(context)

    def _start(self):
        return Server(self.context.earshot, self.folder, SETTINGS, {"EARSHOT_DATABASE_URL": self.database.url})

    def round(self, number):
        random = self.context.random
        with self._start() as server:
            stop = threading.Event()
            log = os.path.join(os.path.dirname(self.folder), "publisher.log")
            with Publisher(self.context, f"{server.rtmp}/live/cam{number}", log) as publisher:
                begun = eventually(30, lambda: server.call("GET", f"rooms/cam{number}")[0] == 200)
                self.context.expect(begun, f"cam{number} has no room after 30 s: {server.tail()}")
                threads = self.ledger.work(server, f"d{number}", stop, workers=3, most=1_000, may_refuse=True, pause=0.01)
                time.sleep(random.uniform(0.1, 1.0))
                hits_database, hits_server = ((True, False), (True, True), (False, True))[(number - 1) % 3]
                if hits_database:
                    self.database.kill()
                    self.context.count("kills of the database")
                    self._while_away(server, publisher, random.uniform(0, 3))
                if hits_server:
                    server.kill()
                    self.context.count("kills of the server")
                if hits_database:
                    self.database.again()
                if not hits_server:
                    self._is_well(server, number)
                stop.set()
                for thread in threads:
                    thread.join()
                if not hits_server:
                    self.context.expect(publisher.starts == 1 and publisher.process.is_running, f"cam{number}'s push was cut: {server.tail()}")
                    self._compare(server)

    def _while_away(self, server, publisher, seconds):
        ends = time.monotonic() + seconds
        self.context.expect(server.answers("/healthz") == 200, f"the server is not alive without its database: {server.tail()}")
        said = eventually(10, lambda: server.answers("/readyz") == 503, 0.1)
        self.context.expect(said, f"/readyz says nothing of the database that is away: {server.tail()}")
        time.sleep(max(0.0, ends - time.monotonic()))
        self.context.expect(publisher.process.is_running, f"the push was cut with the database: {server.tail()}")

    def _is_well(self, server, number):
        began = time.monotonic()
        body = {"roomId": f"back{number}"}
        made = eventually(60, lambda: server.call("POST", "rooms", body)[0] in (200, 201, 409), 0.05)
        seconds = time.monotonic() - began
        self.context.expect(made and seconds < CLAIM, f"no room could be made {seconds:.1f} s after the database was back: {server.tail()}")
        well = eventually(30, lambda: server.answers("/readyz") == 200, 0.1)
        self.context.expect(well, f"/readyz does not say that the database is back: {server.tail()}")

    def _compare(self, server):
        events = self.ledger.compare(server)
        ids = [event["id"] for event in events]
        self.context.expect(ids == list(range(1, len(ids) + 1)), f"the ids of {len(ids)} events have a gap before {ids[-1:]}")

    def look(self):
        """By a last server, which ends as an operator would have it."""
        with self._start() as server:
            self._compare(server)
            server.process.popen.send_signal(signal.SIGTERM)
            status = server.ended_by_itself(20)
            self.context.expect(status == 0, f"SIGTERM ended the server with {status}: {server.tail()}")
