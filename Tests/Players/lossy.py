"""A bad network between a player by WHEP and the server: packets are lost and overtake each other, both ways; or few come through to the player; or nothing but TCP does."""

import heapq
import http.server
import itertools
import os
import random
import re
import selectors
import socket
import threading
import time
import urllib.error
import urllib.request
from urllib.parse import urlsplit

LOSS = 0.03
# The share of packets that come late, and by how many seconds: those behind them overtake them.
LATE, LATE_BY = 0.03, (0.005, 0.03)
# Of a narrow network: for how many seconds packets wait in its queue, at most.
QUEUE = 1


class LossyNetwork:
    """Passes a client's HTTP requests on to the server, and puts itself into the answers as the address that packets go to. Use it as a context.

    One thread passes packets on. The dice's seed can be set by EARSHOT_SEED.
    """

    def __init__(self, server_base, has_udp=True, has_luck=True):
        self.server_base, self.has_udp, self.has_luck = server_base, has_udp, has_luck
        # Bits a second that come through to the client; None: all. And when the last of them will have.
        self.rate, self.free_at = None, 0
        self.seed = int(os.environ.get("EARSHOT_SEED") or random.randrange(1 << 30))
        self.dice = random.Random(self.seed)
        # To the client and to the server: packets, those that were lost, those that were late.
        self.counts = {"client": [0, 0, 0], "server": [0, 0, 0]}
        self.selector = selectors.DefaultSelector()
        self.wake, self.woken = socket.socketpair()
        self.selector.register(self.woken, selectors.EVENT_READ)
        self.lock = threading.Lock()
        self.fronts = []
        self.late, self.order = [], itertools.count()
        self.is_stopping = False
        owner = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                owner._pass_on(self)

            do_OPTIONS = do_POST

            def log_message(self, *_):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.threads = [threading.Thread(target=run, daemon=True) for run in (self.http.serve_forever, self._run)]
        for thread in self.threads:
            thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.http.shutdown()
        self.http.server_close()
        self.is_stopping = True
        self.wake.send(b"!")
        self.threads[1].join(5)
        self.selector.close()

    def url(self, url):
        """The same URL by this network."""
        return url.replace(self.server_base, f"http://127.0.0.1:{self.http.server_port}")

    def __str__(self):
        ways = [f"{lost} of {count} packets to the {end} lost, {late} late" for end, (count, lost, late) in self.counts.items()]
        return f"{', '.join(ways)} (EARSHOT_SEED={self.seed})"

    # --- HTTP

    def _pass_on(self, request):
        body = request.rfile.read(int(request.headers.get("Content-Length") or 0))
        # The name by which the server is asked goes into the address of the session.
        headers = {name: value for name, value in request.headers.items() if name.lower() not in ("host", "content-length", "connection")}
        onward = urllib.request.Request(self.server_base + request.path, body or None, headers, method=request.command)
        try:
            with urllib.request.urlopen(onward, timeout=10) as answer:
                status, headers, body = answer.status, answer.headers, answer.read()
        except urllib.error.HTTPError as error:
            with error:
                status, headers, body = error.code, error.headers, error.read()
        if status == 201:
            body = self._redirected(body.decode()).encode()
        request.send_response(status)
        for name, value in headers.items():
            if name.lower() not in ("content-length", "connection", "date", "server", "transfer-encoding"):
                request.send_header(name, value)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)

    def _redirected(self, answer):
        """The answer with a port of this network for each candidate. TCP, which loses nothing, is left where there is no UDP."""
        if self.has_udp:
            answer = re.sub(r"a=candidate:\S+ \d+ tcp .*\r\n", "", answer, flags=re.IGNORECASE)
        ports = {}

        def replaced(found):
            target = (found[2], int(found[3]))
            if target not in ports:
                ports[target] = self._open(target)
            return f"{found[1]}127.0.0.1 {ports[target]} typ host"

        return re.sub(r"(a=candidate:\S+ \d+ udp \d+ )(\S+) (\d+) typ host", replaced, answer, flags=re.IGNORECASE)

    def _open(self, target):
        front = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        front.bind(("127.0.0.1", 0))
        front.setblocking(False)
        with self.lock:
            self.fronts.append((front, target))
        self.wake.send(b"!")
        return front.getsockname()[1]

    # --- Packets

    def _run(self):
        # What a socket's packets need: for one in front, the server's address and a socket behind it for each client's.
        while not self.is_stopping:
            wait = self.late[0][0] - time.monotonic() if self.late else None
            for key, _ in self.selector.select(max(0, wait) if wait is not None else None):
                if key.data is None:
                    self.woken.recv(100)
                else:
                    key.data(key.fileobj)
            with self.lock:
                fronts, self.fronts = self.fronts, []
            for front, target in fronts:
                self._register(front, self._taker(target))
            while self.late and self.late[0][0] <= time.monotonic():
                _, _, send = heapq.heappop(self.late)
                send()
        for key in list(self.selector.get_map().values()):
            key.fileobj.close()
        self.wake.close()

    def _register(self, udp, take):
        self.selector.register(udp, selectors.EVENT_READ, take)

    def _taker(self, target):
        """What to do with a client's packets."""
        behind = {}

        def take(front):
            data, client = front.recvfrom(65536)
            if not self.has_udp:
                return
            if client not in behind:
                behind[client] = back = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                back.connect(target)
                self._register(back, lambda back: self._come_back(front, client, self._read(back)))
            self._send("server", lambda: self._write(behind[client], data))

        return take

    def _come_back(self, front, client, data):
        """A packet from the server, by the queue of a narrow network."""
        if not data:
            return
        rate, now = self.rate, time.monotonic()
        if rate is None:
            self._send("client", lambda: front.sendto(data, client))
            return
        self.free_at = max(self.free_at, now)
        if self.free_at - now > QUEUE:
            self.counts["client"][0] += 1
            self.counts["client"][1] += 1
            return
        self.free_at += 8 * len(data) / rate
        heapq.heappush(self.late, (self.free_at, next(self.order), lambda: self._send("client", lambda: front.sendto(data, client))))

    @staticmethod
    def _read(udp):
        # The server may be gone.
        try:
            return udp.recv(65536)
        except ConnectionError:
            return b""

    @staticmethod
    def _write(udp, data):
        try:
            udp.send(data)
        except ConnectionError:
            pass

    def _send(self, end, send):
        """Sends now, late or never."""
        counts = self.counts[end]
        counts[0] += 1
        luck = self.dice.random() if self.has_luck else 1
        if luck < LOSS:
            counts[1] += 1
        elif luck < LOSS + LATE:
            counts[2] += 1
            heapq.heappush(self.late, (time.monotonic() + self.dice.uniform(*LATE_BY), next(self.order), send))
        else:
            send()
