#!/usr/bin/env python3
"""docs_run.py BINARY [FILE…]: runs the commands in the documents' shell blocks, each document's on a server of its own, and tells which fail.

A command gets a minute to succeed, for what comes a moment later, such as a stream. Players, publishers and `earshot events follow`, which do not end,
must still run after two seconds, and go on beside the document's other commands. Not run: what installs, builds or needs other machines, and what the tests of apps run (SKIPPED).
"""

import concurrent.futures
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"```sh\n(.*?)```", re.S)
ASSIGNMENT = re.compile(r"^([A-Z]+)=(\$\(.*\))$")
# The first words of commands that are for a machine of their own, or are what this runs within.
SKIPPED = (
    "make ", "sudo make ", "sudo install ", "sudo apt-get ", "sudo systemctl ", "systemctl ", "tar ", "./run", "certbot ", "docker ", "kubectl ",
    "earshot serve ", "python3 -m venv ", "~/.machine/bin/python ", "sudo -u earshot earshot store restore ", "earshot store copy ")
ENDLESS = ("ffmpeg -re ", "ffplay ", "earshot events follow")
# Exit statuses other than 0 that the text leads to: there is no such delivery, and no such host.
EXPECTED = {"earshot webhooks deliveries redeliver 17": 3, "earshot webhooks test 1": 1}
# Of the API, of claw machines, and of classes.
REFUSED = re.compile(r'\{"code":\d+,.*"error":\{|\{"code":(?!200\b)\d+,"msg":|\{"data":.*"errCode":[1-9]', re.S)
# Each document mostly waits.
AT_ONCE = 4
# Documents whose commands are about a room that the reader has: its own push is not among them.
HAS = {"credentials.md": "walk", "health.md": "cam1", "recording.md": "cam1", "talkback.md": "cam1", "links.md": "cam1"}
PATIENCE = 60


def commands(text):
    """One command each, without its comment; lines that end in a backslash are one."""
    for block in BLOCK.findall(text):
        for line in block.replace("\\\n", " ").splitlines():
            line = re.sub(r"(^|\s+)# .*$|\s+#$", "", line).strip()
            if line:
                yield line


class Server:
    """A server, its folder, and what runs beside it."""

    def __init__(self, binary, folder):
        self.folder = folder
        (folder / "bin").mkdir()
        # Where it is, the server and the commands use it.
        (folder / "earshot-data").mkdir(mode=0o700)
        (folder / "bin" / "earshot").symlink_to(binary)
        self.environment = {
            **os.environ, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "SDL_VIDEODRIVER": "dummy", "SDL_AUDIODRIVER": "dummy",
        }
        self.processes = []
        self.http = self.rtmp = None

    def start(self):
        process, output = self.begin("earshot serve --rtmp 127.0.0.1:0 --http 127.0.0.1:0")
        self.http, self.rtmp = self.ports(process, output)
        self.environment["EARSHOT_SERVER"] = f"http://127.0.0.1:{self.http}"

    @staticmethod
    def ports(process, output):
        """HTTP's and RTMP's, as the server prints them."""
        end = time.monotonic() + PATIENCE
        said = ""
        while time.monotonic() < end and process.poll() is None:
            said = output.read_text(encoding="utf-8", errors="replace")
            found = [re.search(rf"{scheme}://127\.0\.0\.1:(\d+)/", said) for scheme in ("http", "rtmp")]
            if all(found) and "Stop with Ctrl-C" in said:
                return [int(port.group(1)) for port in found]
            time.sleep(0.1)
        raise Failed(f"the server did not start: {said[-300:]}")

    def here(self, command):
        """The command for this server: its ports and folders in place of the usual ones."""
        command = command.replace("127.0.0.1:8080", f"127.0.0.1:{self.http}").replace("127.0.0.1:1935", f"127.0.0.1:{self.rtmp}")
        command = command.replace("rtmp://127.0.0.1/", f"rtmp://127.0.0.1:{self.rtmp}/").replace("VIDEO.mp4", "video.mp4")
        command = command.replace("sudo -u earshot ", "").replace("/var/lib/earshot", "earshot-data").replace("/srv/backup", "backup")
        return command.replace("/etc/earshot/earshot.yaml", str(ROOT / "deploy" / "earshot.yaml"))

    def begin(self, command):
        """The process, which ends with this server, and the file that it writes to."""
        output = self.folder / f"output-{len(self.processes)}"
        with open(output, "w", encoding="utf-8") as file:
            process = subprocess.Popen(
                ["bash", "-c", f"exec {command}"], cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL, stdout=file,
                stderr=subprocess.STDOUT, start_new_session=True)
        self.processes.append(process)
        return process, output

    def run(self, command):
        return subprocess.run(
            ["bash", "-c", f"set -o pipefail; {command}"], cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True,
            text=True, errors="replace", timeout=120, check=False)

    def must(self, command, expected=0):
        """Runs it until it ends as expected; what it said last."""
        end = time.monotonic() + PATIENCE
        while True:
            done = self.run(command)
            # curl without --fail succeeds with any HTTP status.
            if done.returncode == expected and not REFUSED.match(done.stdout):
                return done.stdout
            if time.monotonic() > end:
                raise Failed(f"exit status {done.returncode}: {(done.stderr or done.stdout).strip()[-300:]}")
            time.sleep(0.5)

    def keeps_running(self, command):
        """Within the same patience: what plays may come before what it plays."""
        end = time.monotonic() + PATIENCE
        while True:
            process, output = self.begin(command)
            time.sleep(2)
            if process.poll() is None:
                return
            if time.monotonic() > end:
                raise Failed(f"ended with {process.returncode}: {output.read_text(encoding='utf-8', errors='replace').strip()[-300:]}")

    def end(self):
        for process in reversed(self.processes):
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()


class Failed(Exception):
    pass


def run_document(path, binary):
    """How many of its commands were run, and what failed."""
    chosen = [command for command in commands(path.read_text(encoding="utf-8")) if not command.startswith(SKIPPED)]
    if not chosen:
        return 0, []
    folder = pathlib.Path(tempfile.mkdtemp(prefix="earshot-docs-"))
    failed = []
    server = Server(binary, folder)
    try:
        server.start()
        source = "-f lavfi -i testsrc2=size=320x240:rate=25 -f lavfi -i sine -c:v libx264 -preset ultrafast -g 25 -c:a aac"
        server.must(f"ffmpeg -v error -y {source} -t 40 video.mp4")
        server.must("ffmpeg -v error -y -f lavfi -i sine -t 3 announcement.mp3 && mkdir -p backup")
        if path.name in HAS:
            server.keeps_running(f"ffmpeg -v error -re -stream_loop -1 -i video.mp4 -c copy -f flv rtmp://127.0.0.1:{server.rtmp}/live/{HAS[path.name]}")
            server.must(f"earshot rooms show {HAS[path.name]}")
        for command in chosen:
            try:
                run_one(server, command)
            except (Failed, subprocess.TimeoutExpired) as error:
                failed.append(f"{path.relative_to(ROOT)}: {command}: {error}")
    except (Failed, subprocess.TimeoutExpired) as error:
        failed.append(f"{path.relative_to(ROOT)}: before its commands: {error}")
    finally:
        server.end()
        shutil.rmtree(folder, ignore_errors=True)
    return len(chosen), failed


def run_one(server, command):
    here = server.here(command)
    assignment = ASSIGNMENT.match(here)
    if assignment:
        value = server.must(f"printf %s \"{assignment.group(2)}\"")
        if not value:
            raise Failed(f"{assignment.group(1)} is empty")
        server.environment[assignment.group(1)] = value
    elif here.startswith(ENDLESS):
        server.keeps_running(here)
    else:
        server.must(here, EXPECTED.get(command, 0))


def main():
    if len(sys.argv) < 2:
        sys.exit("usage: docs_run.py BINARY [FILE…]")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    binary = pathlib.Path(sys.argv[1]).resolve()
    paths = [pathlib.Path(name).resolve() for name in sys.argv[2:]] or [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    count, failures = 0, []
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for done, failed in pool.map(lambda path: run_document(path, binary), paths):
            count += done
            failures += failed
    for line in failures:
        print(f"docs-check: {line}")
    print(f"docs-check: {count} commands of the documents' shell blocks were run: {'all right' if not failures else f'{len(failures)} failed'}")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
