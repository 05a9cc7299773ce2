"""Hostile clients beside honest ones, in a control group of 512 MB: the server is not killed for its memory, and no honest viewer lacks a byte."""

import atexit
import contextlib
import http.client
import json
import os
import signal
import time

from certificate import certificate
from media import Publisher, Viewer
from server import Server
from tools import HERE, NotHere, eventually, say

from processes import Process
from standstill import Standstill

LIMIT = 512 << 20
# MiB that the server may have: three times what long runs measured (97).
HIGHEST = 300
SETTINGS = {
    # All come from one address here.
    "limits.connectionsPerAddress": "20000",
    "limits.httpPerAddress": "20000",
    "limits.httpConnections": "4000",
    "limits.viewersPerStream": "5000",
    # For streams' media and the bytes that connections have sent: the default in such a control group.
    "limits.memory": "307MiB",
}
# Bytes that may be charged when the attackers are gone: the honest stream's.
LEFT = 24 << 20
# Bytes by which the server may grow beyond what it has charged at most: buffers of the allocator, stacks, the honest viewers' connections.
UNCHARGED = 64 << 20
# Milliseconds that an honest viewer may be behind while the machine is busy with the attack itself.
BEHIND = 4_500


def run(context):
    if not context.load:
        raise RuntimeError("earshot-load must stand beside earshot, or --load name it")
    for number in context.each_round():
        folder = context.path(f"round-{number}", "")
        with memory_group(context) as group:
            os.makedirs(folder, exist_ok=True)
            under = group.under if group else ()
            with Server(context.earshot, os.path.join(folder, "data"), SETTINGS, environment=certificate(folder), under=under) as server:
                _round(context, server, group, folder)
        context.forget(folder)


def memory_group(context):
    try:
        return MemoryGroup(LIMIT)
    except NotHere as why:
        if not context.may_skip:
            raise
        say(f"hostile: {why}; the server's memory is looked at instead")
        return contextlib.nullcontext()


class MemoryGroup:
    """A control group with a limit of memory, of version 1 or 2. Removed at the end, with whatever is left in it."""

    def __init__(self, limit):
        name = f"earshot-torture-{os.getpid()}-{time.monotonic_ns()}"
        self.path = None
        for top, file in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")):
            path = os.path.join(top, name)
            try:
                os.mkdir(path)
            except OSError:
                continue
            try:
                # Only where the system has made the file: in a plain folder it would be one of ours.
                with open(os.path.join(path, file), "r+", encoding="ascii") as out:
                    out.write(str(limit))
                self.path = path
                break
            except OSError:
                os.rmdir(path)
        if not self.path:
            raise NotHere("no control group with a limit of memory can be made")
        # Also after ^C, when nobody comes to the end of the block.
        atexit.register(self.close)
        # The shell is the server afterwards.
        self.under = ("sh", "-c", f'echo $$ >"{self.path}/cgroup.procs" && exec "$@"', "sh")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
        atexit.unregister(self.close)

    def close(self):
        if not os.path.isdir(self.path):
            return

        def empty():
            with open(os.path.join(self.path, "cgroup.procs"), encoding="ascii") as file:
                left = file.read().split()
            for pid in left:
                os.kill(int(pid), signal.SIGKILL)
            return not left

        eventually(10, empty, 0.2)
        os.rmdir(self.path)

    def read(self, *names):
        """The number in the first of these files that is there."""
        for name in names:
            path = os.path.join(self.path, name)
            if os.path.exists(path):
                with open(path, encoding="ascii") as file:
                    return file.read()
        return ""

    def kills(self):
        """How often the system has killed in here."""
        for line in self.read("memory.oom_control", "memory.events").splitlines():
            name, _, count = line.partition(" ")
            if name == "oom_kill":
                return int(count)
        return 0


def _round(context, server, group, folder):
    viewers, clients, seconds = (50, 16, 8) if context.is_short else (1000, 150, 60)
    report = os.path.join(folder, "honest.json")
    honest = [context.load, "run", "--url", f"{server.rtmp}/live", "--rooms", 1, "--viewers", viewers, "--video-kbps", 600, "--gop", 30]
    honest += ["--seconds", seconds, "--warmup", 1, "--max-behind-ms", BEHIND, "--json", report]
    attack = ["python3", os.path.join(HERE, "hostile.py"), server.rtmp_port, server.http_port, server.https_port, seconds + 3, clients, context.random.randrange(1 << 32)]
    with Publisher(context, f"{server.rtmp}/live/cam1", os.path.join(folder, "publisher.log")), Viewer(server.http_port, "cam1") as viewer:
        if not context.expect(viewer.sees(20), f"no stream before anything was done: {server.tail()}"):
            return
        attackers = Process(attack, os.path.join(folder, "attack.log"))
        machine = Standstill()
        # Before the honest ones come.
        time.sleep(1)
        load = Process(honest, os.path.join(folder, "honest.log"))
        try:
            _watch(context, server, load, seconds)
        finally:
            load.stop()
            eventually(20, lambda: not attackers.is_running)
            attackers.stop()
        _judge(context, server, group, report, load, attackers, machine.longest)
        context.expect(viewer.sees(10), "a viewer has nothing after the attack")
        calm = eventually(30, lambda: server.answers("/api/v1/rooms") == 200, 0.2)
        context.expect(calm, "the API does not answer after the attack")


def _watch(context, server, load, seconds):
    """Health checks are answered meanwhile, and what the server holds is charged."""
    before, highest = server.resident_kib() << 10, _charged(server) or 0
    end = time.monotonic() + seconds + 60
    while load.is_running and time.monotonic() < end:
        status = server.answers(timeout=10)
        if not context.expect(status == 200, f"a health check under attack was answered {status}"):
            break
        if not context.expect(server.is_running, f"the server ended under attack: {server.tail()}"):
            break
        # What is given back stays with the allocator for a while, so the highest charge counts.
        highest = max(highest, _charged(server) or 0)
        grown = (server.resident_kib() << 10) - before
        what = f"the server grew by {grown >> 20} MiB and has charged {highest >> 20} MiB at most"
        if not context.expect(grown < highest + UNCHARGED, what):
            break
        time.sleep(0.5)
    context.expect(not load.is_running, "the honest viewers did not come to an end")


def _charged(server):
    """Bytes; None when the server does not answer."""
    try:
        page = server.request("GET", "/metrics")[1]
    except (OSError, http.client.HTTPException):
        return None
    return next((int(float(line.split()[1])) for line in page.splitlines() if line.startswith("earshot_memory_used_bytes ")), None)


def _judge_figures(context, server):
    """What the attackers made the server hold is charged while they do it, and given back when they are gone."""

    def is_low():
        bytes_ = _charged(server)
        return bytes_ is not None and bytes_ < LEFT

    context.expect(eventually(30, is_low, 0.5), f"{_charged(server)} bytes are charged after the attack; less than {LEFT} are expected")


def _judge(context, server, group, report, load, attackers, stood_still):
    if group:
        context.expect(group.kills() == 0, f"the system has killed in the control group {group.kills()} times")
    highest = server.highest_kib() >> 10
    context.expect(highest < HIGHEST, f"the server had {highest} MiB")
    _judge_figures(context, server)
    context.done["MiB at most"] = max(context.done["MiB at most"], highest)
    text = attackers.text().strip().splitlines()[-1]
    try:
        done = json.loads(text)
    except ValueError:
        context.find(f"the attackers failed: {text[-300:]}")
        return
    for kind, what in done.items():
        context.expect(what["connections"] > 0, f"nobody attacked by {kind}")
        context.count("attacks", what["connections"])
    if not context.expect(os.path.exists(report), f"no figures of the honest viewers: {load.text()[-500:]}"):
        return
    with open(report, encoding="utf-8") as file:
        figures = json.load(file)
    loss = figures["loss"]
    wrong = {name: count for name, count in loss.items() if name != "firstFailure" and count}
    context.expect(not wrong, f"honest viewers lack something: {wrong}, {loss.get('firstFailure')}")
    latest = figures["latency"].get("max")
    allowed = BEHIND + 1000 * stood_still
    context.expect(latest is not None and latest < allowed, f"an honest viewer was {latest} ms behind; {allowed:.0f} are allowed")
    context.expect(load.popen.returncode == 0, f"the honest load ended with {load.popen.returncode}: {load.text()[-300:]}")
