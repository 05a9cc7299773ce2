"""The servers under test: earshot, and nginx with its RTMP module beside it. Each on ports of its own on 127.0.0.1."""

import json
import os
import re
import shutil
import socket
import urllib.request

from processes import Process, wait_for

NGINX_MODULE = "/usr/lib/nginx/modules/ngx_rtmp_module.so"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Earshot:
    """A server process with a data folder of its own."""

    name = "earshot"

    def __init__(self, binary, folder):
        self.folder = os.path.join(folder, "earshot")
        os.makedirs(self.folder, exist_ok=True)
        data = os.path.join(self.folder, "data")
        arguments = [binary, "serve", "--rtmp", "127.0.0.1:0", "--http", "127.0.0.1:0", "--data", data]
        banner = os.path.join(self.folder, "banner")
        with open(banner, "wb") as out:
            self.process = Process(arguments, os.path.join(self.folder, "server.log"), stdout=out)

        def text():
            if not self.process.is_running:
                raise RuntimeError(f"earshot ended: {self.process.text()[-800:]}")
            with open(banner, encoding="utf-8") as file:
                text = file.read()
            return text if "Stop with Ctrl-C." in text else None

        try:
            text = wait_for("the server's banner", 20, text)
        except BaseException:
            self.process.stop()
            raise
        self.rtmp_base = re.search(r"rtmp://[^/\s]+", text)[0]
        self.http_base = re.search(r"http://[^/\s]+", text)[0]
        with open(os.path.join(data, "admin-token"), encoding="utf-8") as file:
            self.token = file.read().strip()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stop(grace=6)

    @property
    def is_running(self):
        return self.process.is_running

    def api(self, path, body=None, method=None):
        """The data of a call of /api/v1/…: GET, or POST with a body."""
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.http_base}/api/v1/{path}", data, headers, method=method)
        with urllib.request.urlopen(request, timeout=5) as answer:
            return json.loads(answer.read() or b"{}").get("data")

    def create_room(self, name):
        """So that URLs can be signed for a stream that is not pushed yet."""
        self.api("rooms", {"roomId": name})

    def push_url(self, name):
        return f"{self.rtmp_base}/live/{name}"

    def whip_url(self, name, signed):
        """Where a stream is pushed by WebRTC. Pages need a signed one: they are of another origin than the server."""
        if not signed:
            return f"{self.http_base}/whip/live/{name}"
        self.create_room(name)
        return self.api(f"rooms/{name}/push-url", {})["whip"]

    def play_url(self, protocol, name):
        """Where a player finds the stream. Pages get a signed URL: they are of another origin than the server."""
        if protocol == "rtmp":
            return f"{self.rtmp_base}/live/{name}"
        kind = {"flv": "flv", "hls": "m3u8", "hls-ts": "ts.m3u8", "mp4": "mp4"}.get(protocol)
        if kind:
            return f"{self.http_base}/live/{name}.{kind}"
        signed = self.api(f"rooms/{name}/play-urls")["streams"][0]
        if protocol == "whep":
            return re.sub(r"/live/([^?]+)\.mp4", r"/whep/live/\1", signed["mp4"])
        if protocol in ("page-hls", "page-hls-ts"):
            return signed["hls" if protocol == "page-hls" else "hlsTs"]
        if protocol == "page-flv":
            return signed["flv"]
        if protocol == "page-ws":
            return re.sub("^http", "ws", signed["mp4"])
        raise ValueError(f"no such protocol: {protocol}")

    def is_live(self, name):
        """Whether pictures or sound arrive at the stream."""
        return any(stream["name"] == name and stream["state"] == "live" for stream in self.api("streams")["list"])


class NginxRTMP:
    """nginx with its RTMP module, as its manual shows it."""

    name = "nginx-rtmp"

    def __init__(self, folder):
        self.folder = os.path.join(folder, "nginx")
        os.makedirs(self.folder, exist_ok=True)
        port = free_port()
        path = os.path.join(self.folder, "nginx.conf")
        with open(path, "w", encoding="utf-8") as file:
            file.write(
                f"load_module {NGINX_MODULE};\ndaemon off;\nmaster_process off;\npid {self.folder}/pid;\n"
                f"error_log {self.folder}/error.log info;\nevents {{ worker_connections 256; }}\n"
                f"rtmp {{ access_log off; server {{ listen 127.0.0.1:{port}; application live {{ live on; wait_key on; }} }} }}\n"
            )
        self.process = Process([self.program(), "-p", self.folder, "-c", path], os.path.join(self.folder, "server.log"))
        self.rtmp_base = f"rtmp://127.0.0.1:{port}"

        def answers():
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", port)) == 0

        try:
            wait_for("nginx", 10, answers)
        except BaseException:
            self.process.stop()
            raise

    @staticmethod
    def program():
        return shutil.which("nginx", path=os.environ.get("PATH", "") + ":/usr/sbin")

    @staticmethod
    def missing():
        """Why it cannot be run; None when it can."""
        if not NginxRTMP.program():
            return "nginx is not installed"
        return None if os.path.exists(NGINX_MODULE) else "nginx's RTMP module is not installed"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stop()

    @property
    def is_running(self):
        return self.process.is_running

    def push_url(self, name):
        return f"{self.rtmp_base}/live/{name}"

    def play_url(self, protocol, name):
        if protocol != "rtmp":
            raise ValueError("nginx-rtmp is compared over RTMP only")
        return f"{self.rtmp_base}/live/{name}"
