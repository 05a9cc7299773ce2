"""A new version takes over while streams are pushed, watched and recorded: no connection is refused, everybody is back as soon as they try
again, no recording is damaged, and a webhook has every event in order."""

import contextlib
import http.client
import os
import selectors
import shutil
import socket
import threading
import time

from media import Publisher, unplayable
from server import Server
from targets import Target
from tools import eventually

SETTINGS = {"recording.apps": "live", "recording.minFree": "0B", "webhooks.timeout": "2s", "rooms.policy.grace": "5s"}
# Seconds until everybody is back: ffmpeg is begun again by this suite, and its stream needs a keyframe.
BACK = 15


def run(context):
    for number in context.each_round():
        folder = context.path(f"round-{number}", "")
        target = Target("good", context.random.randrange(1 << 32))
        try:
            _Round(context, folder, target).run()
        finally:
            target.close()
        context.forget(folder)


class _Round:
    def __init__(self, context, folder, target):
        self.context, self.folder, self.target = context, folder, target
        self.publishers, self.viewers = (5, 50) if context.is_short else (20, 200)

    def run(self):
        context = self.context
        versions = [os.path.join(self.folder, f"earshot-{name}") for name in ("old", "new")]
        for path in versions:
            shutil.copy2(context.earshot, path)
        program = os.path.join(self.folder, "earshot")
        os.symlink(versions[0], program)
        data = os.path.join(self.folder, "data")
        with Server(program, data, {**SETTINGS, "webhooks.urls": self.target.url}) as server, contextlib.ExitStack() as stack:
            publishers = [Publisher(context, f"{server.rtmp}/live/cam{n}", os.path.join(self.folder, f"publisher-{n}.log")) for n in range(self.publishers)]
            for publisher in publishers:
                stack.enter_context(publisher)
            watch = stack.enter_context(_Watch(server, publishers, self.viewers))
            if not context.expect(eventually(30, lambda: watch.is_all_well(server, 0)), f"not all is well before a restart: {watch.state}: {server.tail()}"):
                return
            for times in range(2):
                # A time that pushes may go on for, or none.
                seconds = context.random.choice((0, 1))
                if times:
                    os.unlink(program)
                    os.symlink(versions[1], program)
                self._restart(server, watch, seconds)
            context.expect(os.readlink(f"/proc/{server.pid}/exe") == versions[1], f"the process is {os.readlink(f'/proc/{server.pid}/exe')}, not the new version")
            watch.stop()
            for publisher in publishers:
                publisher.stop()
            self._judge(server, data, watch)
            context.expect(server.terminate() == 0, f"SIGTERM: {server.tail()}")

    def _restart(self, server, watch, seconds):
        context = self.context
        starts = server.tail(1 << 20).count("has started")
        status, told = server.call("POST", "server/drain", {"restart": True, "timeout": seconds})
        if not context.expect(status == 202, f"the restart: {status} {told}"):
            return
        status, again = server.call("POST", "server/drain", {"restart": True}) if seconds else (409, "")
        context.expect(status == 409, f"a second restart meanwhile: {status} {again}")
        context.expect(eventually(20, lambda: server.tail(1 << 20).count("has started") > starts), f"not started again: {server.tail()}")
        began = time.monotonic()
        context.expect(eventually(BACK, lambda: watch.is_all_well(server, began)), f"after {BACK} s: {watch.state}: {server.tail()}")
        context.count("restarts")
        context.done["ms until all were back at most"] = max(context.done["ms until all were back at most"], round(1000 * (time.monotonic() - began)))

    def _judge(self, server, data, watch):
        context = self.context
        context.expect(not watch.refused, f"{len(watch.refused)} connections were refused: {watch.refused[:3]}")
        context.expect(watch.probes > 20, f"only {watch.probes} connections were tried")
        context.count("connections", watch.probes + watch.joins)
        recordings = server.settled_recordings()
        if context.expect(recordings, "recordings are never finished"):
            context.expect(all(item["state"] == "finished" for item in recordings), f"recordings: {[item['state'] for item in recordings]}")
            # Each push of each publisher has one.
            context.expect(len(recordings) >= 3 * self.publishers, f"{len(recordings)} recordings of {self.publishers} publishers and two restarts")
        for fault in unplayable(data, recordings or ()):
            context.find(fault)
        context.count("recordings", len(recordings or ()))
        events = server.events()
        context.expect(eventually(20, lambda: len({event["id"] for event in self.target.accepted()}) >= len(events)),
                       f"the target has {len({event['id'] for event in self.target.accepted()})} of {len(events)} events")
        last = {}
        for event in self.target.accepted():
            room = event["roomId"]
            if room is not None:
                context.expect(event["number"] <= last.get(room, 0) + 1, f"room {room} got event {event['number']} after {last.get(room, 0)}")
                last[room] = max(last.get(room, 0), event["number"])
        context.count("events", len(events))


class _Watch(threading.Thread):
    """Viewers of HTTP-FLV on one thread, which come back at once when they are sent away; publishers begun again; and a connection tried every
    20 ms. Owned by the round."""

    def __init__(self, server, publishers, viewers):
        super().__init__(daemon=True)
        self.rtmp_port, self.http_port, self.publishers, self.count = server.rtmp_port, server.http_port, publishers, viewers
        self.refused = []
        self.probes = self.joins = 0
        self.state = "nothing yet"
        self._selector = selectors.DefaultSelector()
        self._ended = threading.Event()
        # When a viewer last had media.
        self._seen = [0.0] * viewers

    def __enter__(self):
        for number in range(self.count):
            self._join(number)
        self.start()
        self._prober = threading.Thread(target=self._probe, daemon=True)
        self._prober.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        self._ended.set()
        if self.is_alive():
            self.join(10)
            self._prober.join(20)

    def is_all_well(self, server, since):
        """Whether every stream is live and recorded, and every viewer has had media since that time."""
        watching = sum(at > since for at in list(self._seen))
        live = server.get("streams?state=live&limit=1")["total"]
        recorded = sum(item["state"] == "recording" for item in server.recordings())
        self.state = f"{live} of {len(self.publishers)} streams, {recorded} of them recorded, {watching} of {self.count} viewers"
        return live == recorded == len(self.publishers) and watching == self.count

    def _join(self, number):
        self.joins += 1
        try:
            connection = socket.create_connection(("127.0.0.1", self.http_port), timeout=10)
        except OSError as why:
            self.refused.append(f"viewer: {why}")
            return
        connection.sendall(b"GET /live/cam%d.flv HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" % (number % len(self.publishers)))
        connection.setblocking(False)
        self._selector.register(connection, selectors.EVENT_READ, number)

    def run(self):
        kept = time.monotonic()
        while not self._ended.is_set():
            for key, _ in self._selector.select(0.1):
                try:
                    data = key.fileobj.recv(65_536)
                except BlockingIOError:
                    continue
                except OSError:
                    data = b""
                if data and not (data.startswith(b"HTTP/1.1 ") and not data.startswith(b"HTTP/1.1 200 ")):
                    # A head alone is no media.
                    if not data.startswith(b"HTTP/1.1 ") or len(data) > 1_000:
                        self._seen[key.data] = time.monotonic()
                    continue
                # The stream is not there yet, or the viewer is sent away.
                self._selector.unregister(key.fileobj)
                key.fileobj.close()
                self._join(key.data)
            if time.monotonic() - kept > 0.2:
                kept = time.monotonic()
                for publisher in self.publishers:
                    publisher.keep()
        for key in list(self._selector.get_map().values()):
            key.fileobj.close()

    def _probe(self):
        while not self._ended.is_set():
            self.probes += 1
            try:
                socket.create_connection(("127.0.0.1", self.rtmp_port), timeout=15).close()
                connection = http.client.HTTPConnection("127.0.0.1", self.http_port, timeout=15)
                connection.request("GET", "/healthz")
                if (answer := connection.getresponse()).status != 200:
                    self.refused.append(f"health: {answer.status}")
                connection.close()
            except (OSError, http.client.HTTPException) as why:
                self.refused.append(f"{type(why).__name__}: {why}")
            time.sleep(0.02)
