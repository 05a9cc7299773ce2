"""Webhooks that are slow, down, or lie: each gets every event at least once when it comes back, in order per room, and nobody is
disturbed meanwhile."""

import os
import threading
import time

from ledger import Ledger
from media import Publisher, Viewer
from server import Server
from targets import WAYS, Target, judge
from tools import eventually

SETTINGS = {
    "webhooks.timeout": "1s",
    "webhooks.retryInterval": "300ms",
    "webhooks.maxRetryInterval": "300ms",
    "rooms.policy.neverStarted": "12h",
    "recording.minFree": "0B",
}
# KiB that the server may grow by, and bytes of its log: three times what long runs measured (18,380 KiB and 26,711 bytes).
GROWTH, LOG = 54 << 10, 80_000


def run(context):
    for number in context.each_round():
        folder = context.path(f"round-{number}", "")
        ways = WAYS if not context.is_short else (*WAYS[:3], *context.random.sample(WAYS[3:], 5))
        targets = [Target(way, context.random.randrange(1 << 32)) for way in ways]
        try:
            _Round(context, folder, targets).run()
        finally:
            for target in targets:
                target.close()
        context.forget(folder)


class _Round:
    def __init__(self, context, folder, targets):
        self.context, self.folder, self.targets = context, folder, targets
        self.settings = {**SETTINGS, "webhooks.urls": ",".join(target.url for target in targets)}
        self.ledger = Ledger(context)

    def start(self):
        return Server(self.context.earshot, os.path.join(self.folder, "data"), self.settings)

    def run(self):
        context = self.context
        # One of the targets is there, then the server is killed, with most of it undelivered.
        with self.start() as server:
            with Publisher(context, f"{server.rtmp}/live/cam1", os.path.join(self.folder, "publisher.log")), Viewer(server.http_port, "cam1") as viewer:
                if not context.expect(viewer.sees(20), f"no stream before anything was done: {server.tail()}"):
                    return
                self._trouble(server, viewer)
            if context.random.random() < 0.5:
                server.kill()
            else:
                context.expect(server.terminate() == 0, f"SIGTERM: {server.tail()}")
        with self.start() as server:
            for target in self.targets:
                if not target.is_good:
                    target.recover()
            self._delivered(server)

    def _trouble(self, server, viewer):
        context = self.context
        before = server.resident_kib()
        good = self.targets[0]
        viewer.watch()
        stop = threading.Event()
        threads = self.ledger.work(server, f"h{context.round}", stop, workers=2, most=12 if context.is_short else 60)
        seconds = 3 if context.is_short else context.random.uniform(5, 25)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            context.expect(server.answers() == 200, "no health check meanwhile")
            time.sleep(0.3)
        stop.set()
        for thread in threads:
            thread.join()
        last = server.events()[-1]["id"]
        prompt = eventually(10, lambda: any(event["id"] >= last for event in good.accepted()))
        context.expect(prompt, f"a good target has not got event {last} for 10 s: {len(good.accepted())} have come")
        context.expect(viewer.gap() < 4, f"a viewer had nothing for {viewer.gap():.1f} s")
        grown, logged = server.resident_kib() - before, server.log_bytes()
        context.expect(grown < GROWTH, f"the server has grown by {grown} KiB")
        context.expect(logged < LOG, f"the log has {logged} bytes")
        context.done["KiB grown at most"] = max(context.done["KiB grown at most"], grown)
        context.done["log bytes at most"] = max(context.done["log bytes at most"], logged)

    def _delivered(self, server):
        """All to all, at last."""
        context = self.context
        end = time.monotonic() + 60
        pending = None
        while time.monotonic() < end:
            # Those that time brings while this asks are the next look's.
            events = server.events()
            pending = server.get("webhooks/deliveries?state=pending&limit=1")["list"]
            if not pending:
                break
            time.sleep(0.2)
        context.expect(not pending, f"a delivery is still pending after 60 s: {pending}")
        context.count("events", len(events))
        # Events that deadlines caused meanwhile are in the store before any target gets them.
        told = [(target, target.accepted()) for target in self.targets]
        by_id = {event["id"]: event for event in server.events()}
        for target, accepted in told:
            judge(context, target, accepted, events, by_id)
            context.count("requests", len(target.seen()))
        abandoned = server.get("webhooks/deliveries?state=failed&limit=10")["list"]
        context.expect(not abandoned, f"deliveries were given up: {abandoned[:1]}")
