"""The disk fails: writes, syncs and openings fail or come to half, at seeded places; no answer is wrong, and the server is well afterwards."""

import os
import threading
import time

import disklog
from ledger import Ledger
from media import Publisher, Viewer, unplayable
from server import Server, check_store
from tools import eventually

SETTINGS = {"recording.apps": "live", "recording.fragment": "500ms", "recording.fsync": "1s", "recording.minFree": "0B", "rooms.policy.neverStarted": "12h"}
# e and n: a write fails; s: it is short; t: it is short, and the next fails; f: fsync fails; o: opening to write fails.
KINDS = ("e", "n", "s", "t", "f", "o", "est", "nf", "enstfo")
# Writes that fail, are short or torn; writes and fsyncs that fail.
SHORT_KINDS = ("est", "nf")
# Out of a thousand: from so many on some call must have failed.
OFTEN = 400


def run(context):
    for number in context.each_round():
        folder = context.path(f"round-{number}", "")
        kinds = SHORT_KINDS[number % 2] if context.is_short else KINDS[(context.seed + number) % len(KINDS)]
        # Out of a thousand. All of them, too: a disk that is gone. Files are seldom opened.
        rate = OFTEN if context.is_short else 1000 if kinds == "o" else context.random.choice((20, 100, OFTEN, 1000))
        _round(context, folder, kinds, rate)
        context.forget(folder)


def _round(context, folder, kinds, rate):
    data, switch = os.path.join(folder, "data"), os.path.join(folder, "failing")
    environment = {
        "LD_PRELOAD": os.path.join(context.shims, "disk.so"),
        "TORTURE_ROOT": data,
        "TORTURE_LOG": os.path.join(folder, "disk.log"),
        "TORTURE_SWITCH": switch,
        "TORTURE_FAULTS": f"{context.random.randrange(1 << 32)}:{rate}:{kinds}",
    }
    ledger = Ledger(context)
    what = f"faults {kinds}, {rate} of 1000: "
    with Server(context.earshot, data, SETTINGS, environment) as server:
        with Publisher(context, f"{server.rtmp}/live/cam1", os.path.join(folder, "publisher.log")), Viewer(server.http_port, "cam1") as viewer:
            if not context.expect(viewer.sees(20), f"no stream before anything was done: {server.tail()}"):
                return
            for index in range(1 if context.is_short else 3):
                _fail(context, server, ledger, viewer, switch, what, index)
            # A fact of the second push, and one more recording.
            with Publisher(context, f"{server.rtmp}/live/cam2", os.path.join(folder, "publisher.log")):
                recorded = eventually(20, lambda: any(item["name"] == "cam2" and item["bytes"] > 0 for item in server.recordings()), 0.2)
                context.expect(recorded, f"{what}a new stream is not recorded afterwards")
        if context.random.random() < 0.5:
            server.kill()
        else:
            status = server.terminate()
            context.expect(status == 0, f"{what}SIGTERM ended the server with {status}: {server.tail()}")
    injected = sum(record.kind == disklog.FAILED for record in disklog.read([environment["TORTURE_LOG"]]))
    context.count("failed calls", injected)
    # The log of changes does not tell a short write from a small one.
    context.expect(injected > 0 or rate < OFTEN or kinds == "s", f"{what}nothing has failed")
    context.count("refused changes", sum(ledger.refusals.values()))
    context.count("answers", ledger.answers)
    for problem in check_store(context.earshot, data):
        context.find(f"{what}store check: {problem}")
    with Server(context.earshot, data, SETTINGS) as server:
        ledger.compare(server, where=what + "after a restart: ")
        recordings = server.settled_recordings()
        if context.expect(recordings is not None, f"{what}recordings are not finished after 60 s"):
            for problem in unplayable(data, recordings):
                context.find(f"{what}{problem}")


def _fail(context, server, ledger, viewer, switch, what, index):
    stop = threading.Event()
    threads = ledger.work(server, f"f{context.round}-{index}", stop, workers=2, most=200, may_refuse=True)
    seconds = 1.5 if context.is_short else context.random.uniform(1, 8)
    with open(switch, "wb"):
        pass
    # Its recording is a file to be opened.
    with Publisher(context, f"{server.rtmp}/live/meanwhile{index}", os.path.join(os.path.dirname(switch), "publisher.log")):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            context.expect(server.answers() == 200, f"{what}no health check meanwhile")
            server.answers("/readyz")
            time.sleep(0.3)
    context.expect(viewer.sees(10), f"{what}the stream does not go on")
    os.unlink(switch)
    ready = eventually(30, lambda: server.answers("/readyz") == 200, 0.2)
    context.expect(ready, f"{what}/readyz is not well after 30 s: {server.answers('/readyz')} {server.tail()}")
    stop.set()
    for thread in threads:
        thread.join()
    context.expect(server.is_running, f"{what}the server ended: {server.tail()}")
    context.expect(ledger.work_on_one(server, f"g{context.round}-{index}", may_refuse=True), f"{what}rooms cannot be changed afterwards")
    ledger.compare(server, where=what)
