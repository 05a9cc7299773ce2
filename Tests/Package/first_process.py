"""The server as the first process of a container, without a service manager below it."""
import contextlib
import os
import signal
import subprocess
import tempfile
import time

from tools import expect, get, run, wait_for


def permitted():
    done = subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", "true"], capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"  unshare makes no process namespace here ({done.stderr.strip()}): the server was not tried as process 1", flush=True)
    return done.returncode == 0


def children(process):
    """The ids of a process's children, with their states: {id: "Z"}."""
    found = {}
    with contextlib.suppress(FileNotFoundError):
        for task in os.listdir(f"/proc/{process}/task"):
            with contextlib.suppress(FileNotFoundError), open(f"/proc/{process}/task/{task}/children", encoding="utf-8") as file:
                for child in file.read().split():
                    found[int(child)] = state(child)
    return found


def state(process):
    """The letter of proc(5); empty for one that is gone."""
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


def is_gone(process):
    return state(process) in ("", "Z", "X")


def serve(binary, folder):
    return ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child",
            binary, "serve", "--rtmp", "127.0.0.1:0", "--http", "127.0.0.1:0", "--data", os.path.join(folder, "data")]


class Container:
    """Processes of their own, of which the server is number 1; `outside` is its parent, which takes it along when it is killed."""

    def __init__(self, binary, folder):
        self.log = os.path.join(folder, "log")
        with open(self.log, "wb") as out:
            self.outside = subprocess.Popen(serve(binary, folder), stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=folder)
        self.server = None
        try:
            self.server = wait_for("process 1", lambda: next(iter(children(self.outside.pid)), None))
            self.started(1)
            self.expect_first()
        except BaseException:
            self.__exit__()
            raise

    def text(self):
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return file.read()

    def expect_first(self):
        with open(f"/proc/{self.server}/status", encoding="utf-8") as file:
            numbers = next(line for line in file if line.startswith("NSpid:")).split()
        expect(numbers[-1] == "1" and len(numbers) > 2, f"the server is process 1 of its own: {numbers}")

    def started(self, times):
        """Waits until it has started so often, and answers."""
        wait_for("its start", lambda: self.outside.poll() is not None or self.text().count("Stop with Ctrl-C.") >= times)
        expect(self.outside.poll() is None, f"the server ended: {self.text()[-600:]}")
        url = [line.split()[1] for line in self.text().splitlines() if line.split()[:1] == ["health"]][-1]
        expect(get(url)[0] == 200, f"{url} answers")

    def restart(self):
        times = self.text().count("Stop with Ctrl-C.")
        os.kill(self.server, signal.SIGUSR2)
        self.started(times + 1)
        self.expect_first()

    def inside(self, *words):
        return run(["nsenter", f"--target={self.server}", "--pid", "--mount", *words])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in [self.server, self.outside.pid]:
            if process and self.outside.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
        self.outside.wait()


@contextlib.contextmanager
def container(binary):
    with tempfile.TemporaryDirectory() as folder, Container(binary, folder) as made:
        yield made


def ends(binary):
    """SIGTERM ends it with status 0; kill -9 of its parent ends it as well."""
    if not permitted():
        return
    with container(binary) as made:
        os.kill(made.server, signal.SIGTERM)
        expect(made.outside.wait(15) == 0, f"it ends well: {made.outside.returncode}")
    with container(binary) as made:
        made.outside.kill()
        wait_for("its end with its parent", lambda: is_gone(made.server))


def restarts(binary):
    """SIGUSR2 starts it again, as process 1; the child that checks the settings before is not left, and SIGTERM still ends it with status 0."""
    if not permitted():
        return
    with container(binary) as made:
        for _ in range(2):
            made.restart()
            expect(not children(made.server), f"no child is left: {children(made.server)}")
        os.kill(made.server, signal.SIGTERM)
        expect(made.outside.wait(15) == 0, f"it ends well: {made.outside.returncode}")


def orphans(binary):
    """Processes whose parent has ended become children of process 1, which takes their end: none stays as a zombie, also over a restart."""
    if not permitted():
        return
    with container(binary) as made:
        for _ in range(3):
            made.inside("sh", "-c", "(sleep 0.2 &) ; (sleep 0.1 &)")
        wait_for("the end of all orphans", lambda: not children(made.server))
        made.inside("sh", "-c", "(sleep 1.5 &)")
        made.restart()
        wait_for("the end of an orphan from before the restart", lambda: not children(made.server))


def ends_with_its_parent(binary):
    """A parent that wants to take it along (PR_SET_PDEATHSIG) can after a restart, too."""
    if not permitted():
        return
    with container(binary) as made:
        made.restart()
        made.outside.kill()
        wait_for("its end with its parent", lambda: is_gone(made.server))


def catches(process, number):
    with open(f"/proc/{process}/status", encoding="utf-8") as file:
        caught = next(line for line in file if line.startswith("SigCgt:")).split()[1]
    return int(caught, 16) >> (number - 1) & 1


def early(binary):
    """SIGTERM as it starts ends it, too, from the moment on when it listens for signals at all: process 1 has no default for them."""
    if not permitted():
        return
    for delay in [0, 0.02, 0.05, 0.1, 0.2]:
        with tempfile.TemporaryDirectory() as folder:
            outside = subprocess.Popen(serve(binary, folder), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                server = wait_for("process 1", lambda: next(iter(children(outside.pid)), None))
                wait_for("its program", lambda: os.path.realpath(f"/proc/{server}/exe") == os.path.realpath(binary))
                wait_for("its ear for SIGTERM", lambda: catches(server, signal.SIGTERM))
                time.sleep(delay)
                os.kill(server, signal.SIGTERM)
                wait_for(f"its end, asked {delay} s after its start,", lambda: outside.poll() is not None)
                expect(outside.returncode in (0, 143), f"it ends well: {outside.returncode}")
            finally:
                outside.kill()
                outside.wait()


CHECKS = [ends, restarts, orphans, ends_with_its_parent, early]
