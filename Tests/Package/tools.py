"""Shared by the checks of the packages: waiting, ports, the server as a process, the service manager's socket."""
import contextlib
import os
import re
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Failed(Exception):
    """A check failed: says what was expected, and what came."""


def expect(condition, what):
    if not condition:
        raise Failed(what)


def wait_for(what, condition, patience=60.0):
    """The first true answer of `condition`; fails when none comes in time."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        answer = condition()
        if answer:
            return answer
        time.sleep(0.05)
    raise Failed(f"{what} did not come in {patience:g} s")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def run(words, patience=60, **options):
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=patience, stdin=subprocess.DEVNULL, **options)
    expect(done.returncode == 0, f"{' '.join(words)} ended with {done.returncode}: {(done.stderr + done.stdout)[-600:]}")
    return done.stdout


def toolchain_libraries(program):
    """Paths of the Swift toolchain's libraries that a debug build loads; a release has them in itself."""
    loaded = re.findall(r" => (/\S+) ", run(["ldd", program]))
    return [path for path in loaded if "/swift/" in path]


def stripped(binary, folder):
    """A copy of the program without its symbols, which are most of a debug build: packing them would take a minute."""
    path = os.path.join(folder, "earshot")
    run(["objcopy", "--strip-all", binary, path])
    return path


class _Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


def get(url, headers=None, patience=30):
    """(status, body) of a GET; follows nothing. Status 0: nobody answers."""
    try:
        with urllib.request.build_opener(_Stay).open(urllib.request.Request(url, headers=headers or {}), timeout=patience) as answer:
            return answer.status, answer.read().decode(errors="replace")
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(errors="replace")
    except OSError:
        return 0, ""


class Manager:
    """A service manager's end of NOTIFY_SOCKET: a datagram socket by path, or by abstract name."""

    def __init__(self, name):
        self.name = name
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind("\0" + name[1:] if name.startswith("@") else name)
        if not name.startswith("@"):
            os.chmod(name, 0o777)
        self.states = []

    def read(self, seconds=0.0):
        """All states so far; waits up to `seconds` for one more datagram."""
        self.socket.settimeout(max(seconds, 0.001))
        with contextlib.suppress(TimeoutError):
            while True:
                self.states.append((time.monotonic(), self.socket.recv(8192).decode().split("\n")))
                self.socket.settimeout(0.001)
        return self.states

    def lines(self):
        self.read()
        return [line for _, lines in self.states for line in lines]

    def wait(self, line, patience=30):
        return wait_for(f"{line} of {self.lines()}", lambda: any(told.startswith(line) for told in self.lines()), patience)

    def close(self):
        self.socket.close()


class Earshot:
    """One run of the server on free ports, with data in a folder of its own. Ends with the block."""

    def __init__(self, binary, environment=None, folder=None):
        self.folder = folder or tempfile.mkdtemp(prefix="earshot-package-")
        self.log = os.path.join(self.folder, "log")
        words = [binary, "serve", "--rtmp", "127.0.0.1:0", "--http", "127.0.0.1:0", "--data", os.path.join(self.folder, "data")]
        with open(self.log, "wb") as out:
            self.process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=self.folder, env={**os.environ, **(environment or {})})
        try:
            wait_for("the banner", lambda: self.process.poll() is not None or "Stop with Ctrl-C." in self.text())
            expect(self.process.poll() is None, f"the server ended: {self.text()[-600:]}")
            self.rtmp = re.search(r"rtmp://[^/\s]+", self.text())[0]
            self.http = re.search(r"http://[^/\s]+", self.text())[0]
            with open(os.path.join(self.folder, "data", "admin-token"), encoding="utf-8") as file:
                self.token = file.read().strip()
        except BaseException:
            self.process.kill()
            raise

    def text(self):
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return file.read()

    def stop(self, patience=30):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(patience)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        return self.process.returncode

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


@contextlib.contextmanager
def push(url, audio_only=False, under=list):
    """ffmpeg pushes a test pattern until the block ends. `under` puts a launcher before its command line."""
    video = [] if audio_only else ["-f", "lavfi", "-i", "testsrc=size=320x180:rate=25"]
    codecs = [] if audio_only else ["-c:v", "libx264", "-preset", "ultrafast", "-tune", "zerolatency", "-g", "25"]
    words = ["ffmpeg", "-v", "error", "-re", *video, "-f", "lavfi", "-i", "sine=440", *codecs, "-c:a", "aac", "-b:a", "24k", "-t", "120", "-f", "flv", url]
    process = subprocess.Popen(under(words), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        yield process
        expect(process.poll() is None, f"the push ended: {process.stderr.read().decode()[-400:] if process.poll() is not None else ''}")
    finally:
        process.kill()
        process.wait()


def frames(url, seconds=2, patience=30, under=list):
    """How many pictures ffmpeg decodes of so many seconds."""
    out = run(under(["ffmpeg", "-v", "error", "-i", url, "-t", str(seconds), "-map", "0:v", "-f", "framemd5", "-"]), patience)
    return sum(1 for line in out.splitlines() if line and not line.startswith("#"))
