"""The installed service under a real systemd, which boots in a container of systemd-nspawn: started, reloaded, watched, stopped."""
import os
import re
import shutil
import subprocess
import time

import restarts
from tools import expect, frames, push, run, wait_for


class Booted:
    """A Debian in a folder, booted, with a network of its own. Commands go in by nsenter."""

    def __init__(self, root):
        self.log = open(os.path.join(os.path.dirname(root), "boot.log"), "wb")
        words = ["systemd-nspawn", "--quiet", f"--directory={root}", "--register=no", "--keep-unit", "--private-network", "--boot"]
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        self.leader = wait_for("the container's systemd", self._leader, 30)
        wait_for("its bus", lambda: self.try_inside("systemctl", "is-system-running").returncode in (0, 1) and
                 self.state() in ("running", "degraded"), 60)

    def _leader(self):
        expect(self.process.poll() is None, "systemd-nspawn runs")
        path = f"/proc/{self.process.pid}/task/{self.process.pid}/children"
        for child in open(path, encoding="utf-8").read().split():
            with open(f"/proc/{child}/comm", encoding="utf-8") as file:
                if file.read().strip() == "systemd":
                    return child
        return None

    def state(self):
        return self.try_inside("systemctl", "is-system-running").stdout.strip()

    def enter(self, *words):
        return ["nsenter", f"--target={self.leader}", "--mount", "--uts", "--ipc", "--net", "--pid", *words]

    def try_inside(self, *words):
        return subprocess.run(self.enter(*words), capture_output=True, text=True, check=False, timeout=90, stdin=subprocess.DEVNULL)

    def inside(self, *words):
        return run(self.enter(*words), 120)

    def show(self, name):
        return self.inside("systemctl", "show", "earshot", f"--property={name}", "--value").strip()

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()


def set_watchdog(folder, seconds):
    with open(f"{folder}/watchdog.conf", "w", encoding="utf-8") as file:
        file.write(f"[Service]\nWatchdogSec={seconds}\n")


def check(debian, deb, say):
    """Installs the package anew, beside systemd, and tries what the unit promises. The clients are this machine's ffmpeg, in the
    container's network."""
    if not shutil.which("systemd-nspawn"):
        say("no systemd-nspawn here: the unit was not tried under systemd")
        return
    debian.apt("install", "systemd-sysv", "dbus")
    debian.apt("install", "/tmp/earshot.deb")
    expect(not debian.processes(), f"nothing runs yet: {debian.processes()}")
    # Seconds, not a minute.
    folder = debian.path("/etc/systemd/system/earshot.service.d")
    os.makedirs(folder)
    set_watchdog(folder, 3)
    booted = Booted(debian.root)
    try:
        expect(booted.show("ActiveState") == "active", f"enabled, it starts with the system: {booted.show('ActiveState')}")
        wait_for("its status", lambda: "0 publishers" in booted.show("StatusText"))
        pid = booted.show("MainPID")
        with_network = lambda words: ["nsenter", f"--target={booted.leader}", "--net", *words]
        with push("rtmp://127.0.0.1:1935/live/cam1", under=with_network):
            wait_for("the status of a push", lambda: booted.show("StatusText") == "1 publisher, 0 viewers")
            for url in ["rtmp://127.0.0.1:1935/live/cam1", "http://127.0.0.1:8080/live/cam1.m3u8"]:
                expect(frames(url, under=with_network) >= 25, f"pictures of {url}")
        booted.inside("systemctl", "reload", "earshot")
        expect(booted.show("ActiveState") == "active" and booted.show("MainPID") == pid, "a reload ends, and nothing restarts")
        begin = time.monotonic()
        booted.inside("sh", "-c", f"kill -STOP {pid}")
        wait_for("systemd to start it again", lambda: booted.show("NRestarts") == "1" and booted.show("ActiveState") == "active", 30)
        say(f"under systemd: used, reloaded; a process that stood still was another {time.monotonic() - begin:.1f} s later (WatchdogSec=3)")
        begin = time.monotonic()
        booted.inside("systemctl", "stop", "earshot")
        result = booted.show("Result")
        # After TimeoutStopSec it would be no success.
        expect(result == "success", f"stopped: {result} after {time.monotonic() - begin:.1f} s")
        level = re.search(r"Overall exposure level for \S+: ([0-9.]+)", booted.inside("systemd-analyze", "security", "--no-pager", "earshot"))
        expect(level and float(level[1]) <= 2.0, f"exposure {level and level[1]}")
        journal = booted.inside("journalctl", "-u", "earshot", "--no-pager", "-o", "cat")
        expect("Operation not permitted" not in journal, f"the unit forbids what the server needs: {journal[-800:]}")
        say(f"stopped in {time.monotonic() - begin:.1f} s; exposure {level[1]}")
        # The status is told three times in this time, too.
        set_watchdog(folder, 6)
        booted.inside("systemctl", "daemon-reload")
        booted.inside("systemctl", "start", "earshot")
        restarts.check(booted, debian, deb, say)
    except Exception:
        print(booted.try_inside("journalctl", "-u", "earshot", "--no-pager", "-n", "40").stdout, flush=True)
        raise
    finally:
        booted.stop()
    shutil.rmtree(folder)
    debian.apt("purge", "earshot")
    for path in ["/etc/systemd/system/multi-user.target.wants/earshot.service", "/var/lib/earshot", "/etc/earshot"]:
        expect(not os.path.lexists(debian.path(path)), f"{path} is gone after the purge")
