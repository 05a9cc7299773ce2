"""The server speaks to its service manager: sd_notify(3) over a real datagram socket."""
import os
import signal
import tempfile
import time

from standstill import Standstill
from tools import Earshot, Manager, expect, push, wait_for


def states(binary):
    """READY once the ports are open, STATUS, WATCHDOG in time, RELOADING and READY, STOPPING: by path and by abstract name."""
    for name in [os.path.join(tempfile.mkdtemp(prefix="earshot-notify-"), "socket"), f"@earshot-test-{os.getpid()}"]:
        manager = Manager(name)
        environment = {"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "3000000"}
        with Earshot(binary, environment) as server:
            manager.wait("READY=1")
            manager.wait("STATUS=0 publishers, 0 viewers")
            begin, machine = time.monotonic(), Standstill()
            wait_for("three signs of life", lambda: manager.lines().count("WATCHDOG=1") >= 3)
            expect(time.monotonic() - begin - machine.total < 9, "signs of life come at least every 3 s")
            with push(f"{server.rtmp}/live/cam1"):
                manager.wait("STATUS=1 publisher, 0 viewers")
            server.process.send_signal(signal.SIGHUP)
            manager.wait("RELOADING=1")
            wait_for("READY after RELOADING", lambda: manager.lines().count("READY=1") == 2)
            expect(any(line.startswith("MONOTONIC_USEC=") for line in manager.lines()), "a reload has its time")
            expect(server.stop() == 0, "the server ends well")
        lines = manager.lines()
        expect("STOPPING=1" in lines and any(line.startswith("EXTEND_TIMEOUT_USEC=") for line in lines), f"STOPPING in {lines}")
        manager.close()


def silence(binary):
    """A process that does not turn gives no sign of life; without a manager none is sought."""
    name = f"@earshot-test-{os.getpid()}-silence"
    manager = Manager(name)
    with Earshot(binary, {"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "600000"}) as server:
        wait_for("signs of life", lambda: manager.lines().count("WATCHDOG=1") >= 3)
        server.process.send_signal(signal.SIGSTOP)
        manager.read(0.5)
        count = manager.lines().count("WATCHDOG=1")
        manager.read(1.5)
        expect(manager.lines().count("WATCHDOG=1") == count, "a stopped process stays silent")
        server.process.send_signal(signal.SIGCONT)
        wait_for("signs of life again", lambda: manager.lines().count("WATCHDOG=1") > count)
    manager.close()
    for environment in [{"NOTIFY_SOCKET": ""}, {"NOTIFY_SOCKET": "vsock:2:1"}, {"NOTIFY_SOCKET": "/nowhere/socket"}, {"NOTIFY_SOCKET": "/" + "x" * 200}]:
        with Earshot(binary, environment) as server:
            expect(server.stop() == 0, f"{environment} disturbs nobody")


def other_process(binary):
    """A watchdog that is for another process is not ours; the manager still hears the rest."""
    name = f"@earshot-test-{os.getpid()}-other"
    manager = Manager(name)
    with Earshot(binary, {"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "300000", "WATCHDOG_PID": "1"}):
        manager.wait("READY=1")
        manager.read(1)
        manager.read(1)
    expect("WATCHDOG=1" not in manager.lines(), f"{manager.lines()}")
    manager.close()


CHECKS = [states, silence, other_process]
