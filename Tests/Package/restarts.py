"""The installed service under a real systemd, started again while clients come: in place, by a socket unit, by an upgrade; and ended slowly."""
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time

from tools import Failed, ROOT, expect, frames, push, run, wait_for


class Service:
    """The service in a booted container, seen from outside."""

    def __init__(self, booted, debian, say):
        self.booted, self.debian, self.say = booted, debian, say

    def under(self, words):
        """Words for a command of this machine in the container's network."""
        return ["nsenter", f"--target={self.booted.leader}", "--net", *words]

    def earshot(self, *words):
        return self.booted.inside("earshot", *words, "--data", "/var/lib/earshot")

    def show(self, *names):
        return [self.booted.show(name) for name in names]

    def status(self, text, patience=60):
        wait_for(f"the status {text!r}", lambda: self.booted.show("StatusText") == text, patience)

    def is_former(self):
        """Whether the running program is one that was replaced."""
        return os.readlink(f"/proc/{self.outer_pid()}/exe").endswith("(deleted)")

    def outer_pid(self):
        """The main process's id as this machine knows it."""
        inner = self.booted.show("MainPID")
        for process in os.listdir("/proc"):
            with contextlib.suppress(OSError):
                if process.isdigit() and open(f"/proc/{process}/comm", encoding="utf-8").read().strip() == "earshot":
                    with open(f"/proc/{process}/status", encoding="utf-8") as file:
                        numbers = next(line for line in file if line.startswith("NSpid:")).split()
                    same = os.readlink(f"/proc/{process}/ns/pid") == os.readlink(f"/proc/{self.booted.leader}/ns/pid")
                    if same and numbers[-1] == inner:
                        return process
        raise Failed(f"the process {inner} of the container is not there")

    @contextlib.contextmanager
    def probed(self, refuses=False):
        """Connects to both ports every 10 ms while the block runs, and yields what came of it, filled in at its end."""
        words = self.under([sys.executable, os.path.join(ROOT, "Tests/Package/probe.py"), "1935", "8080"])
        process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        figures = {}
        try:
            expect(process.stdout.readline() == "probing\n", "the probe begins")
            yield figures
            out, _ = process.communicate("", 90)
            figures.update(json.loads(out))
        finally:
            process.kill()
            process.wait()
        for name, tally in figures.items():
            expect(tally["good"] > 20 and not tally["silent"] and not tally["other"], f"{name}: answers: {tally}")
            expect(refuses or not tally["refused"], f"{name}: nobody is refused: {tally}")
        # Those that were accepted in the last moment may be cut: docs/operations/restarts.md, Restart.
        expect(figures["http"]["cut"] <= figures["http"]["asked"] // 20 + 5, f"few are cut: {figures['http']}")

    @contextlib.contextmanager
    def device(self, name="cam1"):
        """Pushes, and comes back whenever the push ends, as a device does."""
        over = threading.Event()

        def act():
            while not over.is_set():
                with contextlib.suppress(Failed), push(f"rtmp://127.0.0.1:1935/live/{name}", under=self.under) as process:
                    while process.poll() is None and not over.is_set():
                        time.sleep(0.05)
                over.wait(0.3)

        thread = threading.Thread(target=act)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def said(self, figures):
        http = figures["http"]
        return f"{http['asked']} asked, {http['refused']} refused, {http['cut']} cut, the longest waited {http['longest'] * 1000:.0f} ms"


def in_place(service):
    """`earshot drain --restart` and SIGUSR2: the same process, active throughout, nobody refused, the push comes back, the status follows."""
    for how, act in [
            ("earshot drain --restart", lambda: service.earshot("drain", "--restart", "--wait")),
            ("SIGUSR2", lambda: service.booted.inside("systemctl", "kill", "-s", "USR2", "--kill-whom=main", "earshot"))]:
        before = service.show("MainPID", "NRestarts", "ExecMainStartTimestampMonotonic")
        starts = log(service).count(" has started")
        states, over = [], threading.Event()

        def watch():
            while not over.is_set():
                states.append(service.show("ActiveState", "StatusText"))
                time.sleep(0.02)

        watcher = threading.Thread(target=watch)
        with service.device():
            service.status("1 publisher, 0 viewers")
            watcher.start()
            try:
                with service.probed() as figures:
                    time.sleep(0.5)
                    begin = time.monotonic()
                    act()
                    wait_for("its start", lambda: log(service).count(" has started") == starts + 1)
                    took = time.monotonic() - begin
                    wait_for("its state", lambda: service.show("ActiveState") == ["active"])
                    service.status("1 publisher, 0 viewers")
                    time.sleep(0.5)
            finally:
                over.set()
                watcher.join()
            expect(frames("rtmp://127.0.0.1:1935/live/cam1", under=service.under) >= 25, "pictures after the restart")
        service.status("0 publishers, 0 viewers")
        after = service.show("MainPID", "NRestarts", "ExecMainStartTimestampMonotonic")
        expect(after == before, f"{how}: the same process: {before}, {after}")
        seen = {state for state, _ in states}
        expect("active" in seen and seen <= {"active", "reloading"}, f"{how}: active throughout: {seen}")
        texts = {text for _, text in states}
        expect("Stopping" not in texts, f"{how}: it never says that it stops: {texts}")
        service.say(f"{how}: the same process after {took:.1f} s; {service.said(figures)}; systemd saw {'; '.join(sorted(texts))}")


def log(service):
    return service.booted.inside("journalctl", "-u", "earshot", "--no-pager", "-o", "cat")


def slow_end(service):
    """A drain that takes longer than TimeoutStopSec: systemd waits for it."""
    settings = service.debian.path("/etc/earshot/earshot.yaml")
    with open(settings, encoding="utf-8") as file:
        former = file.read()
    with open(settings, "w", encoding="utf-8") as file:
        file.write(re.sub(r"^(drain:\n(?:  #.*\n)*?)  #timeout: 0$", r"\1  timeout: 20s", former, flags=re.M))
    service.booted.inside("systemctl", "reload", "earshot")
    wait_for("the setting", lambda: "drain.timeout" in log(service))
    limit = service.show("TimeoutStopUSec")[0]
    expect(limit == "10s", f"systemd by itself waits for less: {limit}")
    with push("rtmp://127.0.0.1:1935/live/cam1", under=service.under) as device:
        service.status("1 publisher, 0 viewers")
        begin = time.monotonic()
        stopping = subprocess.Popen(service.booted.enter("systemctl", "stop", "earshot"), stdin=subprocess.DEVNULL)
        service.status("Stopping")
        while stopping.poll() is None and time.monotonic() - begin < 40:
            if device.poll() is not None and time.monotonic() - begin < 19:
                break
            time.sleep(0.05)
        pushed = device.poll() is None or time.monotonic() - begin >= 19
        stopping.wait(40)
        took = time.monotonic() - begin
        expect(pushed, f"the push goes on meanwhile: it ended after {took:.1f} s")
        expect(20 <= took < 35, f"the stop takes as long as the drain: {took:.1f} s")
        expect(service.show("Result", "ExecMainStatus", "ActiveState") == ["success", "0", "inactive"], f"{service.show('Result', 'ExecMainStatus')}")
        device.wait(10)
        # `push` expects its process to run at the end.
        device.poll = lambda: None
    with open(settings, "w", encoding="utf-8") as file:
        file.write(former)
    service.booted.inside("systemctl", "start", "earshot")
    service.say(f"a drain of 20 s, beyond TimeoutStopSec={limit}: stopped after {took:.1f} s, Result=success")


def socket_unit(service):
    """earshot.socket, put in place as it says itself: the first connection starts the service, and a restart refuses nobody."""
    shutil.copy(service.debian.path("/usr/share/doc/earshot/deploy/earshot.socket"), service.debian.path("/etc/systemd/system/earshot.socket"))
    service.booted.inside("systemctl", "daemon-reload")
    service.booted.inside("sh", "-c", "systemctl stop earshot && systemctl enable --now earshot.socket earshot")
    expect(service.booted.inside("systemctl", "is-active", "earshot", "earshot.socket").split() == ["active", "active"], "both are active")
    service.booted.inside("systemctl", "stop", "earshot")
    expect(service.show("ActiveState") == ["inactive"], "the service is stopped")
    begin = time.monotonic()
    told = run(service.under(["curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", "--max-time", "20", "http://127.0.0.1:8080/healthz"]))
    took = time.monotonic() - begin
    expect(told == "200", f"the first connection starts it, and is answered: {told}")
    # The answer may be there before the server's word to systemd.
    wait_for("its state", lambda: service.show("ActiveState") == ["active"])
    pid = service.show("MainPID")
    with service.device():
        service.status("1 publisher, 0 viewers")
        with service.probed() as figures:
            time.sleep(0.5)
            service.booted.inside("systemctl", "restart", "earshot")
            service.status("1 publisher, 0 viewers")
            time.sleep(0.5)
    expect(service.show("MainPID") != pid, "systemd has started another process")
    service.say(f"earshot.socket: started by the first connection, answered after {took:.1f} s; systemctl restart: {service.said(figures)}")
    service.booted.inside("systemctl", "disable", "--now", "earshot.socket")
    os.unlink(service.debian.path("/etc/systemd/system/earshot.socket"))
    service.booted.inside("systemctl", "daemon-reload")
    service.booted.inside("systemctl", "restart", "earshot")


def reload_by_call(service):
    """`earshot reload`: systemd sees a reload, as after SIGHUP, and the log in its status says so."""
    changed = lambda: int(service.show("StateChangeTimestampMonotonic")[0])
    for how, act in [("SIGHUP", lambda: service.booted.inside("systemctl", "kill", "-s", "HUP", "--kill-whom=main", "earshot")),
                     ("earshot reload", lambda: service.earshot("reload"))]:
        before, reloads = changed(), log(service).count("Settings reloaded")
        act()
        wait_for("the reload", lambda: log(service).count("Settings reloaded") == reloads + 1)
        wait_for(f"systemd to see a reload by {how}", lambda: changed() > before and service.show("ActiveState") == ["active"])
    told = service.booted.try_inside("systemctl", "status", "--no-pager", "--lines=20", "earshot").stdout
    expect("Settings reloaded" in told and "Active: active (running)" in told, f"systemctl status after `earshot reload`: {told[-600:]}")


def repacked(service, deb, name, version, change=lambda tree: None):
    """The package with a higher version, after `change` of its files."""
    folder = os.path.dirname(service.debian.root)
    tree = os.path.join(folder, name)
    run(["dpkg-deb", "-R", deb, tree])
    control = os.path.join(tree, "DEBIAN/control")
    with open(control, encoding="utf-8") as file:
        text = file.read()
    with open(control, "w", encoding="utf-8") as file:
        file.write(re.sub(r"^(Version: .*)$", rf"\1+{version}", text, flags=re.M))
    change(tree)
    run(["dpkg-deb", "-Zgzip", "-z1", "--root-owner-group", "-b", tree, service.debian.path(f"/root/{name}.deb")], patience=300)
    shutil.rmtree(tree)
    return f"/root/{name}.deb"


def install(service, path):
    """`apt-get install` inside, as an administrator runs it. Returns what it said."""
    done = service.booted.try_inside(
        "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q", "-y", "-o", "Dpkg::Options::=--force-confold", "install", path)
    expect(done.returncode == 0, f"apt-get install {path}: {(done.stdout + done.stderr)[-800:]}")
    return done.stdout + done.stderr


def other_unit(tree):
    with open(f"{tree}/lib/systemd/system/earshot.service", "a", encoding="utf-8") as file:
        file.write("# A line that this version brings.\n")


def upgrades(service, deb):
    """`apt-get install` of a newer package over the running service: in place when the unit is the same, by systemd when it is another, and
    not at all when the new program refuses the settings."""
    policy = service.debian.path("/usr/sbin/policy-rc.d")
    os.rename(policy, policy + ".off")
    service.earshot("rooms", "create", "--room-id", "kept-by-upgrades")
    has_room = lambda: "kept-by-upgrades" in service.earshot("rooms", "list")
    newer = {
        "same unit": repacked(service, deb, "same", "same"), "refused": repacked(service, deb, "refused", "same1"),
        "another unit": repacked(service, deb, "other", "same2", other_unit)}
    pid = service.show("MainPID")
    with service.device():
        service.status("1 publisher, 0 viewers")
        with service.probed() as figures:
            said = install(service, newer["same unit"])
            service.status("1 publisher, 0 viewers")
    now = service.show("MainPID", "NRestarts", "ActiveState")
    expect(not service.is_former() and now == [*pid, "0", "active"], f"the new program in the same process: {now}; {said[-600:]}")
    expect(has_room(), "its room is there")
    service.say(f"upgraded while it ran: the new program in the same process; {service.said(figures)}")

    settings = service.debian.path("/etc/earshot/earshot.yaml")
    with open(settings, "a", encoding="utf-8") as file:
        file.write("nosuch: {setting: 1}\n")
    with service.probed() as figures:
        said = install(service, newer["refused"])
    is_said = "still the former version" in said
    goes_on = service.is_former() and service.show("ActiveState") == ["active"]
    expect(is_said and goes_on, f"with wrong settings the former one goes on: {said[-600:]}")
    run(["sed", "-i", "/^nosuch/d", settings])
    service.say(f"upgraded with settings that have a mistake: the former program goes on, and apt says so; {service.said(figures)}")

    with service.probed(refuses=True) as figures:
        said = install(service, newer["another unit"])
        wait_for("its start", lambda: service.show("ActiveState") == ["active"])
        time.sleep(0.5)
    expect(not service.is_former() and service.show("MainPID") != pid, f"another process with the new unit: {said[-600:]}")
    expect(service.show("NeedDaemonReload") == ["no"] and has_room(), "systemd knows the unit, and its room is there")
    service.say(f"upgraded with another unit: started by systemd, nobody listened for {figures['http']['away']:.2f} s; {service.said(figures)}")
    os.rename(policy + ".off", policy)


def check(booted, debian, deb, say):
    """All of it, on a service that runs."""
    service = Service(booted, debian, say)
    in_place(service)
    reload_by_call(service)
    slow_end(service)
    socket_unit(service)
    upgrades(service, deb)
