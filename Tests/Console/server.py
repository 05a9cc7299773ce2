"""An Earshot server, and devices that push to it, for the console's tests."""
import json
import os
import re
import signal
import subprocess
import time
import urllib.error
import urllib.request


def wait_for(what, condition, patience=60):
    end = time.monotonic() + patience
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.1)
    raise TimeoutError(f"waited {patience} s for {what}")


class Server:
    """On ports that it chose at its first start, and keeps."""

    def __init__(self, binary, folder, options=(), settings=None, before=()):
        """`settings`: by the names of their environment variables. `before`: a command that runs the server, such as taskset."""
        self.before, self.binary, self.folder, self.options = list(before), binary, folder, list(options)
        self.environment = {**os.environ, **(settings or {})}
        self.rtmp = self.http = "127.0.0.1:0"
        self.start()

    def start(self):
        banner = os.path.join(self.folder, "banner")
        with open(banner, "wb") as out, open(os.path.join(self.folder, "server.log"), "ab") as log:
            self.process = subprocess.Popen(
                [*self.before, self.binary, "serve", "--rtmp", self.rtmp, "--http", self.http, "--data", os.path.join(self.folder, "data"), *self.options],
                stdin=subprocess.DEVNULL, stdout=out, stderr=log, env=self.environment)

        def text():
            if self.process.poll() is not None:
                raise RuntimeError(f"earshot ended: {self.log()[-800:]}")
            with open(banner, encoding="utf-8") as file:
                whole = file.read()
            return whole if "Stop with Ctrl-C." in whole else None

        said = wait_for("the server's banner", text)
        self.rtmp = re.search(r"rtmp://([^/\s]+)", said)[1]
        self.http = re.search(r"http://([^/\s]+)", said)[1]
        self.console = re.search(r"console (\S+)", said)[1]
        with open(os.path.join(self.folder, "data", "admin-token"), encoding="utf-8") as file:
            self.token = file.read().strip()

    def stop(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        self.process.wait(20)

    def log(self):
        with open(os.path.join(self.folder, "server.log"), encoding="utf-8", errors="replace") as file:
            return file.read()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.stop()

    def api(self, path, body=None, method=None):
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://{self.http}/api/v1/{path}", data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return json.loads(answer.read() or b"{}").get("data")
        except urllib.error.HTTPError as error:
            error.msg = f"{error.msg}: {request.get_method()} {path}: {error.read()[:300].decode(errors='replace')}"
            raise

    def is_live(self, room):
        try:
            return self.api(f"rooms/{room}")["state"] == "live"
        except OSError:
            return False


class Device:
    """ffmpeg pushes a picture of one colour, or what `source` says (None: only sound), until it is stopped. `to`: another address than the server's.
    `video`: other options of the encoder. `program`: another ffmpeg."""

    def __init__(self, server, name, source="color=c=red:size=320x180:rate=25", audio=None, extra=(), to=None, video=None, program="ffmpeg"):
        inputs, codecs = [], []
        if source:
            inputs += ["-re", "-f", "lavfi", "-i", source]
            codecs += video or ["-c:v", "libx264", "-preset", "ultrafast", "-tune", "zerolatency", "-g", "25", "-pix_fmt", "yuv420p"]
        if audio:
            inputs += ["-re", "-f", "lavfi", "-i", audio]
            codecs += ["-c:a", "aac", "-b:a", "64k"]
        self.process = subprocess.Popen(
            [program, "-nostdin", "-v", "error", *inputs, *codecs, *extra, "-f", "flv", f"rtmp://{to or server.rtmp}/{name}"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stderr.close()

    @property
    def is_running(self):
        return self.process.poll() is None
