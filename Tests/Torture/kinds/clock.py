"""The machine's clock leaps, again and again, by seconds to years: rooms, events and recordings keep their times, and nothing ends or is
deleted for it.

Never behind the right time: libfaketime would put off the timers of libdispatch by as much, which no real clock does.
"""

import datetime
import os
import threading
import time

from ledger import Ledger
from media import Publisher, Viewer, unplayable
from server import Server, check_store
from tools import preload_clock

SETTINGS = {
    "recording.apps": "live",
    "recording.fragment": "500ms",
    "recording.splitDuration": "3s",
    "recording.minFree": "0B",
    # All that a clock could end or delete.
    "recording.retention": "24h",
    "rooms.policy.neverStarted": "2h",
    "rooms.policy.maxDuration": "12h",
    "rooms.policy.retention": "24h",
    "rooms.history": "168h",
}
MINUTE, HOUR, DAY = 60, 3_600, 86_400
LEAPS = (2, 20, 59, 61, 5 * MINUTE, HOUR + 1, 2 * HOUR + 1, 11 * HOUR, DAY, 7 * DAY + 1, 30 * DAY, 366 * DAY, 3_652 * DAY)
# Where leaps are followed: nothing gets as old as what may be deleted.
FOLLOWED = tuple(seconds for seconds in LEAPS if seconds < 12 * HOUR)
# Steps up to a minute are no leaps, and followed at once; twice, there and back between two looks. Seconds.
UNSEEN = 2 * MINUTE
# Leaps with one start of the server.
LIFETIME = 100


def run(context):
    life = None
    try:
        for number in context.each_round():
            if life is None or life.leaps >= LIFETIME:
                if life:
                    life.close()
                life = _Life(context, number)
            life.leap()
        if life:
            life.close()
            life = None
    finally:
        if life:
            life.abandon()


class _Life:
    """One server and its leaps. Every other one follows what holds for a second; its rooms' times then move with the clock."""

    def __init__(self, context, number):
        self.context = context
        self.folder = context.path(f"life-{number}", "")
        self.data = os.path.join(self.folder, "data")
        self.file = os.path.join(self.folder, "time")
        self.ledger = Ledger(context)
        self.leaps = 0
        self.began = time.time()
        # Seconds by which the server's clock has ever been wrong.
        self.offsets = {0}
        self.follows = (context.seed + number // LIFETIME) % 2 == 1
        self._set(0)
        # libfaketime changes the environment of the first program that it is in; Swift does not find its arguments then: hence env.
        under = (
            *("env", f"LD_PRELOAD={preload_clock()}", f"FAKETIME_TIMESTAMP_FILE={self.file}", "FAKETIME_NO_CACHE=1"),
            *("FAKETIME_DONT_FAKE_MONOTONIC=1", "DONT_FAKE_MONOTONIC=1", "env"),
        )
        self.settings = {**SETTINGS, "rooms.clockHold": "1s" if self.follows else "10m"}
        self.server = Server(context.earshot, self.data, self.settings, under=under)
        self.publisher = Publisher(context, f"{self.server.rtmp}/live/cam1", os.path.join(self.folder, "publisher.log"))
        self.viewer = Viewer(self.server.http_port, "cam1")
        self.stop = threading.Event()
        self.threads = self.ledger.work(self.server, f"c{number}", self.stop, workers=1, most=3000)
        context.expect(self.viewer.sees(20), f"no stream before anything was done: {self.server.tail()}")
        status, _ = self.server.call("POST", "rooms", {"roomId": "waiting"})
        context.expect(status == 201, f"a room was answered {status}")
        self.waiting = self.server.get("rooms/waiting")

    def _set(self, seconds):
        # Whole or not at all: the program reads it at each look at its clock.
        with open(self.file + ".new", "w", encoding="ascii") as file:
            file.write(f"+{seconds}\n")
        os.rename(self.file + ".new", self.file)

    def leap(self):
        context = self.context
        self.leaps += 1
        seconds = context.random.choice((0, *(FOLLOWED if self.follows else LEAPS))) + context.random.choice((0, 0, context.random.randrange(MINUTE)))
        hold = context.random.choice((0.3, 2)) if self.follows else context.random.uniform(0.1, 0.6)
        if self.leaps == 1:
            # A leap that is surely seen.
            seconds, hold = HOUR + 1, 2.5
        self._set(seconds)
        self.offsets.add(seconds)
        self.stop.wait(hold)
        context.expect(self.server.is_running, f"the server ended after a leap to +{seconds} s: {self.server.tail()}")
        if self.leaps % 6 == 0:
            what = f"{self.leaps} leaps, the last to +{seconds} s: "
            context.expect(self.viewer.sees(10), f"{what}the stream stands still")
            room = self.server.get("rooms/waiting")
            context.expect(room["state"] == "created", f"{what}a room that waits is {room['state']}")
            still = self.follows or room["createdAt"] == self.waiting["createdAt"]
            context.expect(still, f"{what}a room was created {room['createdAt']}, before {self.waiting['createdAt']}")
            live = self.server.get("rooms/cam1")
            context.expect(live["state"] == "live", f"{what}a room with a stream is {live['state']}")
            self.ledger.note_finished(self.server)

    def close(self):
        context = self.context
        self._set(0)
        self.stop.set()
        for thread in self.threads:
            thread.join()
        self._look_at_times(self.ledger.compare(self.server))
        gone = [item["recordingId"] for item in self.server.recordings() if item["state"] in ("deleted", "failed")]
        context.expect(not gone, f"recordings were deleted or failed: {gone}")
        context.expect(self.server.log_bytes() < 400_000, f"the log has {self.server.log_bytes()} bytes after {self.leaps} leaps")
        self.viewer.stop()
        self.publisher.stop()
        status = self.server.terminate()
        context.expect(status == 0, f"SIGTERM ended the server with {status}: {self.server.tail()}")
        for problem in check_store(context.earshot, self.data):
            context.find(f"store check: {problem}")
        with Server(context.earshot, self.data, self.settings) as server:
            self.ledger.compare(server, where="after a restart: ")
            recordings = server.settled_recordings()
            if context.expect(recordings is not None, "recordings are not finished after 60 s"):
                for problem in unplayable(self.data, recordings):
                    context.find(problem)
                there = {item["recordingId"] for item in recordings if item["state"] == "finished"}
                lost = set(self.ledger.finished) - there
                context.expect(not lost, f"{len(lost)} finished recordings are gone, such as {sorted(lost)[:1]}")
        context.count("answers", self.ledger.answers)
        context.forget(self.folder)

    def _look_at_times(self, events):
        """Rooms' time runs evenly: what was made here is dated since this began, or so much later as the clock was set and followed."""
        now = time.time()
        offsets = self.offsets if self.follows else {0}
        self.context.expect(any(event["kind"] == "clock.leapt" for event in events), "no leap was told")
        self.context.count("leaps told", sum(event["kind"] == "clock.leapt" for event in events))
        for event in events:
            stamp = _seconds(event["at"])
            is_right = any(self.began - UNSEEN <= stamp - offset <= now + UNSEEN for offset in offsets)
            if not self.context.expect(is_right, f"event {event['id']} ({event['kind']}) is dated {event['at']}"):
                return

    def abandon(self):
        self.viewer.stop()
        self.publisher.stop()
        self.server.kill()


def _seconds(text):
    return datetime.datetime.fromisoformat(text).timestamp()
