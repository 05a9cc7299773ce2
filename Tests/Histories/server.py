"""The server under test: started, killed and started again on one data directory."""

import os
import re
import sys
import threading
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "Players"))

from processes import Process, wait_for  # noqa: E402
from wire import Connection, Lost, NotSent  # noqa: E402

# The histories are about what is right, not about how often one may ask; and nothing of what others set for their server.
ENVIRONMENT = {"EARSHOT_API_RATE_LIMIT": "1000000"}


class Server:
    """One data directory and the process that works on it. Started and killed by one thread (a process ends with the thread that made it)."""

    def __init__(self, binary, folder, recorder):
        self.binary = binary
        self.folder = folder
        self.recorder = recorder
        self.data = os.path.join(folder, "data")
        self.process = None
        self.token = None
        # Which run of the server it is, and its port while it is up.
        self.run = 0
        self.port = None
        self.changed = threading.Event()

    def start(self):
        self.run += 1
        banner = os.path.join(self.folder, f"banner-{self.run}")
        arguments = [self.binary, "serve", "--rtmp", "127.0.0.1:0", "--http", "127.0.0.1:0", "--data", self.data]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("EARSHOT_")}
        begin = self.recorder.now()
        with open(banner, "wb") as out:
            self.process = Process(arguments, os.path.join(self.folder, "server.log"), stdout=out, env={**environment, **ENVIRONMENT})

        def port():
            if not self.process.is_running:
                raise RuntimeError(f"the server ended: {self.process.text()[-800:]}")
            with open(banner, encoding="utf-8") as file:
                text = file.read()
            return re.search(r"http://127\.0\.0\.1:(\d+)", text)[1] if "Stop with Ctrl-C." in text else None

        port = int(wait_for("the server's banner", 60, port, every=0.01))
        if self.token is None:
            with open(os.path.join(self.data, "admin-token"), encoding="utf-8") as file:
                self.token = file.read().strip()
        wait_for("an answer of /readyz", 60, lambda: self._is_ready(port), every=0.01)
        self.recorder.add("up", run=self.run, start=begin, end=self.recorder.now())
        self.port = port
        self.changed.set()

    def _is_ready(self, port):
        try:
            connection = Connection(port, self.token)
            try:
                return connection.ask("GET", "/readyz").status == 200
            finally:
                connection.close()
        except (NotSent, Lost, ValueError):
            return False

    def kill(self):
        """kill -9, in the midst of what it does."""
        self.changed.clear()
        self.port = None
        begin = self.recorder.now()
        was_running = self.process.is_running
        self.process.popen.kill()
        self.process.popen.wait(30)
        self.recorder.add("down", run=self.run, start=begin, end=self.recorder.now())
        if not was_running:
            raise RuntimeError(f"the server ended by itself: {self.process.text()[-800:]}")

    def stop(self):
        self.port = None
        if self.process:
            self.process.stop(grace=6)

    def connect(self, token=None, source="127.0.0.1", seconds=60):
        """A connection to the present run, and its number. Waits while there is none; raises NotSent when there is none for too long."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if not self.changed.wait(1):
                continue
            run, port = self.run, self.port
            if port is None:
                continue
            try:
                connection = Connection(port, token or self.token, source)
            except NotSent:
                # It is being killed.
                time.sleep(0.01)
                continue
            # A port may come back with the next run: only one that was this run's all the time counts.
            if self.run == run and self.port == port:
                return connection, run
            connection.close()
        raise NotSent(f"no server for {seconds} s")
