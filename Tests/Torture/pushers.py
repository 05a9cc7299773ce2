"""Devices that push a stream to any node of a cluster, come back every second, and write down what they saw."""

import contextlib
import io
import socket
import struct
import threading
import time

import rtmp_push
from media import GOP

# Frames a second: keyframes alone.
RATE = 4
# Seconds until an impatient device gives a silent server up, and between tries.
PATIENCE, PAUSE = 5, 1


def first_tags(sample):
    """(The sequence headers of a sample, its first keyframe): tags as (kind, body)."""
    with open(sample, "rb") as file:
        head = io.BytesIO(file.read(1 << 20))
    headers, keyframe = [], None
    for kind, _, body, _ in rtmp_push.tags(head):
        if kind == 9 and body[1] == 1 and body[0] >> 4 == 1:
            keyframe = (kind, body)
            break
        if kind == 18 or (kind == 9 and body[1] == 0):
            headers.append((kind, body))
    if keyframe is None:
        raise RuntimeError(f"{sample} begins without a keyframe ({GOP} frames apart)")
    return headers, keyframe


class _Link(rtmp_push.Publisher):
    """One connection, which knows when the server was heard last and whether it has ended."""

    def __init__(self, url):
        self.heard_at = time.monotonic()
        self.has_ended = threading.Event()
        super().__init__(url, PATIENCE)
        # Its answer may have taken as long as a device waits.
        self.heard_at = time.monotonic()

    def _drain(self):
        with contextlib.suppress(OSError, ValueError):
            while self.reader.read1(65536):
                self.heard_at = time.monotonic()
        self.has_ended.set()

    def ping(self):
        # RTMP 1.0 §7.1.7: PingRequest.
        self.send(2, 4, 0, 0, struct.pack(">HI", 6, int(time.monotonic() * 1000) & 0xFFFFFFFF))

    def hang_up(self):
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


class Pusher(threading.Thread):
    """One device. `log` has what it saw: (seconds, node, what, stream), of which `live` is the answer to publish. Owned by the round."""

    def __init__(self, nodes, number, tags, is_patient):
        super().__init__(daemon=True)
        self.nodes, self.number = nodes, number
        self.headers, self.keyframe = tags
        # A patient one waits at a server that says nothing for as long as its connection stands.
        self.is_patient = is_patient
        self.user = f"dev{number}"
        # A room that was closed does not open again: its device has the next one.
        self.generation = 0
        self.log = []
        # The name of each room that the device had, and how many pushes it had there at least.
        self.lives = {}
        # Where it pushed since all was well, the last one at the end: runs of a server, and the name.
        self._places = []
        self.node = None
        # The name that it pushes there; after a close still the former one, until it is cut.
        self.pushed = None
        # Whether somebody keeps it out at present.
        self.is_barred = False
        self._touched_at = 0.0
        # Connections that it left standing.
        self.ghosts = []
        self._deserts = threading.Event()
        self._place = number % len(nodes.all)
        self._ended = threading.Event()

    @property
    def stream(self):
        return f"cam{self.number}-{self.generation}"

    def note(self, what, node):
        self.log.append((time.monotonic(), node.name, what, self.stream))

    def run(self):
        while not self._ended.is_set():
            node = self.nodes.all[self._place]
            link = self._connect(node)
            if link:
                self._push(link, node)
            # Not the same node again: what stands before nodes would choose another, too.
            self._place = (self._place + 1) % len(self.nodes.all)
            self._ended.wait(PAUSE)

    def _connect(self, node):
        server = node.server
        if server is None:
            return None
        name = self.stream
        self.note("try", node)
        try:
            link = _Link(f"{server.rtmp}/live/{name}?user={self.user}")
        except (OSError, struct.error) as why:
            self.note(f"refused: {why}", node)
            return None
        # Where it was before it may go on with that push: a server that is cut off does not know that another has taken it over.
        place = (server, name)
        self.lives[name] = self.lives.get(name, 0) + (place not in self._places)
        self._places.append(place)
        self.note("live", node)
        self.node, self.pushed = node, name
        return link

    def _push(self, link, node):
        began, count = time.monotonic(), 0
        with contextlib.suppress(OSError):
            for kind, body in self.headers:
                link.tag(kind, 0, body)
            while not link.has_ended.is_set() and not self._ended.is_set():
                link.tag(self.keyframe[0], int((time.monotonic() - began) * 1000), self.keyframe[1])
                if count % RATE == 0:
                    link.ping()
                count += 1
                if self._deserts.is_set():
                    break
                if not self.is_patient and time.monotonic() - link.heard_at > PATIENCE:
                    self.note("gave up", node)
                    break
                link.has_ended.wait(1 / RATE)
        self.node = self.pushed = None
        self.note("end", node)
        if self._deserts.is_set():
            self._deserts.clear()
            self.ghosts.append(link)
        else:
            link.hang_up()

    def all_is_well(self):
        """Every server knows by now what has become of its pushes."""
        self._places = self._places[-1:]

    def bar(self, is_barred):
        self.is_barred = is_barred
        self._touched_at = time.monotonic()

    def was_touched(self, since):
        """Whether somebody kept it out since then, or shortly before."""
        return self.is_barred or self._touched_at > since - PATIENCE

    def desert(self):
        """Goes to another node, as a device does that has lost its network: the former connection stands, and says nothing any more."""
        self._deserts.set()

    def lay_ghosts(self):
        """Hangs up what it has left standing. Returns how many of that no server had ended."""
        ghosts, self.ghosts = self.ghosts, []
        standing = sum(not ghost.has_ended.is_set() for ghost in ghosts)
        for ghost in ghosts:
            ghost.hang_up()
        return standing

    def ask_to_end(self):
        self._ended.set()

    # MARK: What it saw

    def live_after(self, moment):
        """When it was live first after that moment; None if not yet."""
        return next((at for at, _, what, _ in list(self.log) if what == "live" and at > moment), None)

    def ended_after(self, moment):
        return next((at for at, _, what, _ in list(self.log) if what == "end" and at > moment), None)
