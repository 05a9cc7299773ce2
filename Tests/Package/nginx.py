"""deploy/nginx.conf in Debian's nginx: HLS from its cache, FLV, WebSocket, addresses of clients; nothing secret in its log."""
import base64
import os
import re
import shutil
import socket
import ssl
import subprocess
import time

from tools import ROOT, Earshot, expect, frames, free_port, get, push, run, wait_for

SAFE = ssl.create_default_context()
SAFE.check_hostname = False
SAFE.verify_mode = ssl.CERT_NONE


# Which client each address of loopback stands for. The first may play without a credential.
CLIENTS = "map $remote_addr $client { 127.0.0.5 203.0.113.9; default 192.0.2.7; }\n"


class Nginx:
    """The example with this machine's ports and folders in place of its own. Every change must find what it changes."""

    def __init__(self, folder, to):
        self.folder, self.http, self.https = folder, free_port(), free_port()
        run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=live.example.com",
             "-keyout", f"{folder}/key.pem", "-out", f"{folder}/chain.pem"])
        with open(os.path.join(ROOT, "deploy", "nginx.conf"), encoding="utf-8") as file:
            text = file.read()
        for pattern, new in [
            (r"server 127\.0\.0\.1:8080;", f"server 127.0.0.1:{to};"), (r"listen 80;", f"listen 127.0.0.1:{self.http};"),
            (r"listen 443 ssl", f"listen 127.0.0.1:{self.https} ssl"), (r"listen \[::\]:(80|443 ssl http2);", ""),
            (r"/etc/letsencrypt/live/live\.example\.com/fullchain\.pem", f"{folder}/chain.pem"),
            (r"/etc/letsencrypt/live/live\.example\.com/privkey\.pem", f"{folder}/key.pem"),
            # Clients on loopback are nobody to the server: these two stand for others.
            (r"\$remote_addr;", "$client;"),
            (r"/var/cache/nginx/earshot", f"{folder}/cache"), (r"/var/log/nginx/earshot\.log", f"{folder}/access.log"),
        ]:
            text, count = re.subn(pattern, new, text)
            expect(count, f"deploy/nginx.conf has {pattern}")
        temporary = "".join(f"{kind}_temp_path {folder}/{kind};\n" for kind in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"])
        user = "user root;\n" if os.getuid() == 0 else ""
        with open(f"{folder}/nginx.conf", "w", encoding="utf-8") as file:
            file.write(f"{user}daemon off;\nmaster_process off;\npid {folder}/pid;\nerror_log {folder}/error.log;\n"
                       f"events {{ worker_connections 256; }}\nhttp {{\n{temporary}{CLIENTS}{text}\n}}\n")
        program = shutil.which("nginx", path=os.environ.get("PATH", "") + ":/usr/sbin")
        words = [program, "-p", folder, "-c", f"{folder}/nginx.conf", "-e", f"{folder}/error.log"]
        run([*words, "-t"])
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_for("nginx", lambda: get(f"http://127.0.0.1:{self.http}/healthz")[0] != 0 or self.process.poll() is not None)
            expect(self.process.poll() is None, "nginx runs")
        except BaseException:
            self.process.kill()
            raise

    def open(self, path, headers=(), source=None):
        """A TLS connection that has asked for `path` by HTTP/1.1."""
        plain = socket.create_connection(("127.0.0.1", self.https), 10, (source, 0) if source else None)
        secure = SAFE.wrap_socket(plain, server_hostname="live.example.com")
        lines = [f"GET {path} HTTP/1.1", "Host: live.example.com", *headers]
        secure.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        return secure

    def get(self, path):
        """(status, headers in small letters, body)."""
        with self.open(path, ["Connection: close"]) as stream:
            data = b""
            while part := stream.recv(65536):
                data += part
        head, _, body = data.partition(b"\r\n\r\n")
        lines = head.decode().split("\r\n")
        return int(lines[0].split()[1]), {line.split(":")[0].lower(): line.partition(":")[2].strip() for line in lines[1:]}, body


def first(stream, wanted, patience=60.0):
    """The bytes up to where `wanted` came, and the seconds until then."""
    begin, data = time.monotonic(), b""
    stream.settimeout(patience)
    while wanted not in data:
        part = stream.recv(65536)
        expect(part, f"{wanted} came before the end; {data[:300]}")
        data += part
    return data, time.monotonic() - begin


def example(binary):
    settings = {
        "EARSHOT_ACCESS_TRUSTED_PROXIES": "127.0.0.1/32", "EARSHOT_HTTP_HOSTS": "live.example.com",
        "EARSHOT_ACCESS_PLAY_FROM": "127.0.0.1/32,192.0.2.7/32", "EARSHOT_URLS_HTTP": "https://live.example.com",
    }
    with Earshot(binary, settings) as server:
        nginx = Nginx(server.folder, server.http.rsplit(":", 1)[1])
        try:
            status, _ = get(f"http://127.0.0.1:{nginx.http}/healthz")
            expect(status == 301, f"plain HTTP leads to HTTPS: {status}")
            with push(f"{server.rtmp}/live/cam1"), push(f"{server.rtmp}/live/voice", audio_only=True):
                wait_for("the streams", lambda: get(f"{server.http}/live/cam1.m3u8", patience=15)[0] == 200)
                base = f"https://127.0.0.1:{nginx.https}/live/cam1"
                for ending in ["m3u8", "flv", "mp4"]:
                    expect(frames(f"{base}.{ending}") >= 25, f"pictures of .{ending}")
                cache(nginx)
                unbuffered(nginx)
                websocket(nginx)
                addresses(nginx)
            with open(f"{server.folder}/access.log", encoding="utf-8") as file:
                log = file.read()
            expect("/live/cam1.hls/" in log and "s=" not in log, "the log has paths and no queries")
        finally:
            nginx.process.kill()
            nginx.process.wait()


def cache(nginx):
    """Two players with sessions of their own: the second one's segments come from the cache, its playlists do not."""
    seen = []
    for _ in range(2):
        status, _, body = nginx.get("/live/cam1.m3u8")
        child = next(line for line in body.decode().splitlines() if line and not line.startswith("#"))
        status, headers, body = nginx.get(f"/live/{child}")
        expect(status == 200 and "x-cache" not in headers, f"a playlist is the player's own: {status} {headers}")
        if not seen:
            names = [line for line in body.decode().splitlines() if line and not line.startswith("#")]
            seen.append(names[-1].split("?")[0])
        session = child.partition("?")[2]
        status, headers, media = nginx.get(f"/live/cam1.hls/{seen[0]}?{session}")
        expect(status == 200 and len(media) > 1000, f"{seen[0]}: {status} {len(media)} bytes")
        seen.append((headers.get("x-cache"), media, session))
    expect([entry[0] for entry in seen[1:]] == ["MISS", "HIT"], f"cache: {[entry[0] for entry in seen[1:]]}")
    expect(seen[1][1] == seen[2][1] and seen[1][2] != seen[2][2], "two sessions, the same bytes")


def unbuffered(nginx):
    """A voice of 24 kbit/s: what a proxy keeps back until a buffer is full would come after seconds."""
    paces = []
    # A machine may stand still for a moment; what a buffer holds back comes late each time.
    for _ in range(5):
        with nginx.open("/live/voice.flv") as stream:
            _, seconds = first(stream, b"FLV\x01")
            longest, begin, last = 0.0, time.monotonic(), time.monotonic()
            while time.monotonic() < begin + 3:
                expect(stream.recv(65536), "the stream goes on")
                longest, last = max(longest, time.monotonic() - last), time.monotonic()
        paces.append((seconds, longest))
        if seconds < 1.5 and longest < 1:
            return
    told = ", ".join(f"{seconds:.1f} s and {longest:.1f} s" for seconds, longest in paces)
    expect(False, f"until the first bytes, and the longest pause after them: {told}")


def websocket(nginx):
    key = base64.b64encode(os.urandom(16)).decode()
    headers = ["Upgrade: websocket", "Connection: Upgrade", f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13"]
    with nginx.open("/live/cam1.flv", headers) as stream:
        data, _ = first(stream, b"FLV\x01")
        expect(data.startswith(b"HTTP/1.1 101"), f"{data[:100]}")


def addresses(nginx):
    """The server judges the address of nginx's client, whatever that says of itself: one that may play, and one that may not."""
    for source, status in [("127.0.0.1", b" 200 "), ("127.0.0.5", b" 403 ")]:
        with nginx.open("/live/cam1.flv", ["X-Forwarded-For: 192.0.2.7"], source=source) as stream:
            data, _ = first(stream, b"\r\n\r\n")
            expect(status in data.split(b"\r\n")[0], f"from {source}: {data[:100]}")


CHECKS = [example]
