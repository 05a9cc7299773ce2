"""Starting and ending other programs: each in a session of its own, its output in a file, ended by its id and never by name."""

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import time

_libc = ctypes.CDLL(None, use_errno=True)
_PR_SET_PDEATHSIG = 1


def _die_with_parent():
    # A suite that is killed leaves nothing behind.
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def have(program):
    """Whether a program is installed."""
    return shutil.which(program) is not None


class Process:
    """A program that runs, and the file that its output goes to. Owned by whoever started it."""

    def __init__(self, arguments, log, stdin=subprocess.DEVNULL, stdout=None, env=None, cwd=None, pass_fds=()):
        self.arguments = [str(argument) for argument in arguments]
        self.log = log
        self.begin = time.time()
        with open(log, "ab") as out:
            out.write((" ".join(self.arguments) + "\n").encode())
            out.flush()
            self.popen = subprocess.Popen(
                self.arguments,
                stdin=stdin,
                stdout=out if stdout is None else stdout,
                stderr=out,
                env=env,
                cwd=cwd,
                pass_fds=pass_fds,
                start_new_session=True,
                preexec_fn=_die_with_parent,
            )

    @property
    def is_running(self):
        return self.popen.poll() is None

    def waited(self):
        """Seconds that it was ready to run and waited for a processor, of the thread that waited longest: the machine's doing (proc(5), schedstat)."""
        longest = 0
        with contextlib.suppress(OSError):
            for task in os.listdir(f"/proc/{self.popen.pid}/task"):
                with contextlib.suppress(OSError), open(f"/proc/{self.popen.pid}/task/{task}/schedstat", encoding="ascii") as file:
                    longest = max(longest, int(file.read().split()[1]))
        return longest / 1e9

    def text(self):
        """The log that it has written so far."""
        with open(self.log, "rb") as file:
            return file.read().decode("utf-8", "replace")

    def stop(self, first=signal.SIGTERM, grace=3.0):
        """Asks it to end, and makes it and its children after `grace` seconds."""
        if self.popen.poll() is None and first != signal.SIGKILL:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.popen.pid, first)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.popen.wait(grace)
        # The group: a program's children outlive it otherwise.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.popen.pid, signal.SIGKILL)
        self.popen.wait(10)
        for stream in (self.popen.stdin, self.popen.stdout):
            if stream:
                with contextlib.suppress(OSError):
                    stream.close()


def wait_for(what, seconds, condition, every=0.05):
    """The first true value of the condition. Raises TimeoutError, which names what did not come."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise TimeoutError(f"{what} did not come within {seconds:g} s")
        time.sleep(every)


def unprivileged(home):
    """The words before a command that refuses to run as root; `home` becomes the other user's. Empty for other users."""
    if os.geteuid() != 0:
        return []
    nobody = 65534
    os.makedirs(home, exist_ok=True)
    os.chown(home, nobody, nobody)
    return ["setpriv", f"--reuid={nobody}", f"--regid={nobody}", "--clear-groups", "--"]


def own_like(model, folder):
    """The folder, and what is in it, belong to whom `model` belongs to."""
    owner = os.stat(model)
    for place, _, files in os.walk(folder):
        for name in (place, *(os.path.join(place, file) for file in files)):
            os.chown(name, owner.st_uid, owner.st_gid)
