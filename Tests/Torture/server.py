"""The server under torture: a process of the real binary, its API, and what can be seen of it from outside."""

import http.client
import json
import os
import re
import signal
import subprocess
import time
import urllib.parse

from tools import eventually

from processes import Process

# Settings that a test on one machine needs; each kind adds its own.
SETTINGS = {"api.rateLimit": "1000000", "outbound.allowPrivate": "127.0.0.0/8", "limits.roomsPerAddress": "10000", "limits.publishesPerAddress": "10000"}


def _variable(setting):
    """relay.maxBehind is EARSHOT_RELAY_MAX_BEHIND."""
    return "EARSHOT_" + re.sub(r"([A-Z]+)", r"_\1", setting).replace(".", "_").upper()


class Failed(Exception):
    """The server did not start, or not as it should."""


class Server:
    """One run of the server. Owned by the kind that started it."""

    # Seconds until the banner; a machine may be busy.
    START = 30

    def __init__(self, earshot, data, settings=None, environment=None, under=(), log=None, listens=("127.0.0.1:0", "127.0.0.1:0")):
        """`listens`: where for RTMP and for HTTP."""
        self.earshot, self.data = earshot, data
        self.log = log or os.path.join(os.path.dirname(data), "server.log")
        os.makedirs(os.path.dirname(self.log), exist_ok=True)
        variables = {_variable(name): str(value) for name, value in {**SETTINGS, **(settings or {})}.items()}
        words = [*under, earshot, "serve", "--rtmp", listens[0], "--http", listens[1], "--data", data]
        banner = self.log + ".banner"
        began = time.monotonic()
        self.log_begins_at = os.path.getsize(self.log) if os.path.exists(self.log) else 0
        with open(banner, "wb") as out:
            self.process = Process(words, self.log, stdout=out, env={**os.environ, **variables, **(environment or {})})

        def text():
            if not self.process.is_running:
                return True
            with open(banner, encoding="utf-8") as file:
                return "Stop with Ctrl-C." in file.read()

        came = eventually(self.START, text, 0.01)
        if not came or not self.process.is_running:
            what = f"ended with {self.process.popen.poll()}" if not self.process.is_running else f"has no banner after {self.START} s"
            self.process.stop(signal.SIGKILL)
            raise Failed(f"the server {what}: {self.tail()}")
        with open(banner, encoding="utf-8") as file:
            text = file.read()
        self.start_seconds = time.monotonic() - began
        self.started_ns = time.monotonic_ns()
        self.pid = self.process.popen.pid
        self.rtmp = re.search(r"rtmp://[^/\s]+", text)[0]
        self.http = re.search(r"http://[^/\s]+", text)[0]
        secure = re.search(r"https://[^/\s]+", text)
        self.https_port = int(secure[0].rsplit(":", 1)[1]) if secure else None
        self.rtmp_port, self.http_port = (int(url.rsplit(":", 1)[1]) for url in (self.rtmp, self.http))
        self.host = urllib.parse.urlsplit(self.http).hostname
        self.token = self._token()

    def _token(self):
        path = os.path.join(self.data, "admin-token")
        if not os.path.exists(path):
            # In a mount namespace of its own.
            path = f"/proc/{self.pid}/root{path}"
        try:
            with open(path, encoding="utf-8") as file:
                return file.read().strip()
        except OSError:
            return ""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stop(grace=8)

    @property
    def is_running(self):
        return self.process.is_running

    def tail(self, count=700):
        """The end of its log, of this run."""
        with open(self.log, "rb") as file:
            file.seek(self.log_begins_at)
            return file.read()[-count:].decode("utf-8", "replace")

    def kill(self):
        self.process.stop(signal.SIGKILL)

    def terminate(self, seconds=20):
        """Ends it as an operator does. Returns its exit status; None: it had to be killed."""
        self.process.popen.send_signal(signal.SIGTERM)
        return self.ended_by_itself(seconds)

    def ended_by_itself(self, seconds):
        """Its exit status once it has ended; None: it had to be killed."""
        try:
            return self.process.popen.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            return None

    # MARK: HTTP

    def request(self, method, path, body=None, timeout=15, headers=None):
        """(status, text). Raises OSError or http.client.HTTPException where there is no whole answer."""
        connection = http.client.HTTPConnection(self.host, self.http_port, timeout=timeout)
        try:
            data = None if body is None else json.dumps(body).encode()
            given = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json", **(headers or {})}
            connection.request(method, path, data, given)
            answer = connection.getresponse()
            return answer.status, answer.read().decode("utf-8", "replace")
        finally:
            connection.close()

    def call(self, method, path, body=None, timeout=15, headers=None):
        """(status, data) of a call of /api/v1/…; for a refusal the whole answer."""
        status, text = self.request(method, f"/api/v1/{path}", body, timeout, headers)
        try:
            value = json.loads(text or "{}")
        except ValueError:
            return status, text
        return status, value.get("data", value) if status < 300 else value

    def get(self, path):
        """The data of a GET that has to work."""
        status, data = self.call("GET", path)
        if status != 200:
            raise Failed(f"GET {path}: {status} {data}")
        return data

    def answers(self, path="/healthz", timeout=10):
        """The status; None where there is no answer."""
        try:
            return self.request("GET", path, timeout=timeout)[0]
        except (OSError, http.client.HTTPException):
            return None

    def events(self, after=0):
        """All events with larger ids, oldest first."""
        found = []
        while True:
            page = self.get(f"events?after={after}&limit=1000")
            found += page["list"]
            if page["isComplete"]:
                return found
            after = page["last"]

    def pages(self, path):
        """The entries of all pages of a list. The path already has a query."""
        found, after = [], ""
        while True:
            page = self.get(path + after)
            found += page["list"]
            if page["next"] is None:
                return found
            after = "&after=" + urllib.parse.quote(str(page["next"]), safe="")

    def recordings(self):
        return self.pages("recordings?limit=1000")

    def settled_recordings(self, seconds=60):
        """All recordings, once the last run's are finished. None: they never were."""
        found = []

        def settled():
            found[:] = self.recordings()
            return all(item["state"] not in ("recording", "finishing") for item in found)

        return found if eventually(seconds, settled, 0.1) else None

    # MARK: The process

    def resident_kib(self):
        return self._status("VmRSS")

    def highest_kib(self):
        """The most memory that it ever had."""
        return self._status("VmHWM")

    def _status(self, name):
        with open(f"/proc/{self.pid}/status", encoding="utf-8") as file:
            return int(re.search(name + r":\s+(\d+)", file.read())[1])

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def log_bytes(self):
        return os.path.getsize(self.log) - self.log_begins_at


def check_store(earshot, data, under=()):
    """The problems that `earshot store check` has with a data directory that no server uses."""
    command = [*under, earshot, "store", "check", "--json", "--data", data]
    outcome = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    try:
        report = json.loads(outcome.stdout)
    except ValueError:
        return [f"ended with {outcome.returncode}: {outcome.stderr.strip()[-400:]}"]
    problems = report["problems"]
    if outcome.returncode != (1 if problems else 0):
        problems = problems + [f"ended with {outcome.returncode} and {len(problems)} problems"]
    # A change without an answer, cut off by a kill or a full disk: reported, and as expected.
    return [text for text in problems if "is normal after a kill or a power cut" not in text]
