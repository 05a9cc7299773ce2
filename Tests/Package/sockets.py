"""The server listens with sockets that it was given: by systemd's protocol (sd_listen_fds(3)), and by itself at a restart under a service manager."""
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

from certificate import certificate
from tools import Earshot, Manager, expect, get, push, wait_for

# Opens ports as systemd does, from descriptor 3 on, and becomes the server.
ACTIVATE = """
import os, socket, sys
numbers = [int(port) for port in sys.argv[1].split(",")]
kept = [socket.create_server(("127.0.0.1", port)) for port in numbers]
kept.append(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
kept[-1].bind(("127.0.0.1", numbers[1]))
print("inode", os.fstat(kept[-1].fileno()).st_ino, flush=True)
for number, one in enumerate(kept):
    os.dup2(one.fileno(), 20 + number)
for number in range(len(kept)):
    os.dup2(20 + number, 3 + number)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=str(len(kept)), LISTEN_FDNAMES=":".join(["earshot.socket"] * len(kept)))
os.execv(sys.argv[2], sys.argv[2:])
"""


def ports(count):
    """Free ones, all different."""
    probes = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    numbers = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return numbers


def command(binary, folder, rtmp, http):
    return [binary, "serve", "--rtmp", f"127.0.0.1:{rtmp}", "--http", f"127.0.0.1:{http}", "--data", os.path.join(folder, "data")]


def given(binary):
    """The ports of the settings are used, in any order, WebRTC's of UDP among them; one that no setting names is closed, and said."""
    with tempfile.TemporaryDirectory() as folder:
        rtmp, http, other = ports(3)
        log = os.path.join(folder, "log")
        with open(log, "wb") as out:
            process = subprocess.Popen(
                [sys.executable, "-c", ACTIVATE, f"{other},{http},{rtmp}", *command(binary, folder, rtmp, http)], stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        try:
            wait_for("health", lambda: get(f"http://127.0.0.1:{http}/healthz")[0] == 200)
            with push(f"rtmp://127.0.0.1:{rtmp}/live/cam1"):
                wait_for("the stream", lambda: "event=room.live" in open(log, encoding="utf-8").read())
            text = open(log, encoding="utf-8").read()
            expect("no setting names its address" in text and str(other) in text, f"a word about the third socket: {text[-600:]}")
            expect(get(f"http://127.0.0.1:{other}/", patience=3)[0] == 0, "the third socket is closed")
            inode = text.split("inode ")[1].split()[0]
            expect(f"socket:[{inode}]" in _open(process.pid), "WebRTC's port is the one that was passed on")
            expect("is not used" not in text and text.count("no setting names its address") == 1, f"nothing else is closed: {text[-600:]}")
        finally:
            process.send_signal(signal.SIGTERM)
            expect(process.wait(15) == 0, "the server ends well")


def _open(process):
    folder = f"/proc/{process}/fd"
    return [os.readlink(os.path.join(folder, name)) for name in os.listdir(folder) if os.path.islink(os.path.join(folder, name))]


def foreign(binary):
    """systemd's own tool for it starts the server with the first connection, which gets its answer."""
    if not shutil.which("systemd-socket-activate"):
        print("  no systemd-socket-activate here: only the protocol was tried")
        return
    with tempfile.TemporaryDirectory() as folder:
        rtmp, http = ports(2)
        words = ["systemd-socket-activate", "-l", f"127.0.0.1:{rtmp}", "-l", f"127.0.0.1:{http}", *command(binary, folder, rtmp, http)]
        with open(os.path.join(folder, "log"), "wb") as out:
            process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        try:
            # The tool itself needs a moment to listen.
            wait_for("the first answer", lambda: get(f"http://127.0.0.1:{http}/healthz", patience=20)[0] == 200)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(15)


class Callers:
    """Eight clients, each on a new connection for each request."""

    def __init__(self, url):
        self.url, self.answers, self.failures, self.stop = url, 0, [], threading.Event()

    def ask(self):
        while not self.stop.is_set():
            try:
                with urllib.request.urlopen(self.url, timeout=15) as answer:
                    expect(answer.status == 200, "health during a restart")
                self.answers += 1
            except OSError as error:
                self.failures.append(f"{error!r}")
            time.sleep(0.005)

    def __enter__(self):
        self.threads = [threading.Thread(target=self.ask) for _ in range(8)]
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        for thread in self.threads:
            thread.join()


def restart(binary):
    """SIGUSR2 under a manager: the same process, RELOADING and READY instead of STOPPING, signs of life go on, and no connection is refused."""
    name = f"@earshot-test-{os.getpid()}-restart"
    manager = Manager(name)
    with Earshot(binary, {"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "3000000"}) as server:
        manager.wait("READY=1")
        for _ in range(2):
            ready = manager.lines().count("READY=1")
            with Callers(f"{server.http}/healthz") as callers:
                server.process.send_signal(signal.SIGUSR2)
                # A second one at once, and one as the program starts, harm nobody: at most it starts once more.
                server.process.send_signal(signal.SIGUSR2)
                wait_for("READY again", lambda: manager.lines().count("READY=1") > ready)
                before = callers.answers
                wait_for("answers of the new program", lambda: callers.answers > before + 20)
            expect(not callers.failures, f"{callers.answers} answers, failed: {callers.failures[:3]}")
        count = manager.lines().count("WATCHDOG=1")
        wait_for("signs of life of the new program", lambda: manager.lines().count("WATCHDOG=1") > count)
        started = server.text().count("has started")
        expect(server.process.poll() is None and 3 <= started <= 5, f"it has started again twice, or once more each time: {server.text()[-800:]}")
        expect("STOPPING=1" not in manager.lines() and manager.lines().count("RELOADING=1") == started - 1, f"{manager.lines()}")
        expect(server.stop() == 0, "the server ends well")
        expect("STOPPING=1" in manager.lines(), f"{manager.lines()}")
    manager.close()


def restart_http2(binary):
    """curl, over HTTP/2 and TLS, with requests that follow each other on a connection: each is answered across restarts, none fails."""
    with tempfile.TemporaryDirectory() as folder:
        (port,) = ports(1)
        settings = {**certificate(folder, 30), "EARSHOT_HTTPS_LISTEN": f"127.0.0.1:{port}"}
        failures, answers, stop = [], [], threading.Event()
        urls = [f"https://127.0.0.1:{port}/healthz"] * 40

        def ask():
            words = ["curl", "--silent", "--show-error", "--insecure", "--http2", "--max-time", "40", "--write-out", "%{http_version} %{http_code}\n", *urls]
            while not stop.is_set():
                done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
                lines = [line for line in done.stdout.splitlines() if line != "ok"]
                if done.returncode or lines != ["2 200"] * len(urls):
                    failures.append((done.returncode, done.stderr[-300:], lines))
                answers.extend(lines)

        with Earshot(binary, settings) as server:
            threads = [threading.Thread(target=ask) for _ in range(4)]
            for thread in threads:
                thread.start()
            try:
                for times in range(2, 5):
                    time.sleep(0.7)
                    server.process.send_signal(signal.SIGUSR2)
                    wait_for("the next start", lambda times=times: server.text().count("has started") == times)
                time.sleep(0.5)
            finally:
                stop.set()
                for thread in threads:
                    thread.join()
        expect(not failures and len(answers) > 200, f"{len(answers)} answers, failed: {failures[:3]}")


CHECKS = [given, foreign, restart, restart_http2]
