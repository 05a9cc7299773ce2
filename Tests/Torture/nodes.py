"""Several servers on one database, each a node of a cluster in a place of its own: their processes, and calls to whichever of them is there."""

import os
import secrets
import signal
import threading

from server import Server
from tools import eventually

NAMES = ("a", "b", "c")


class Node:
    """One node, over all runs of its process. Changed by the round's thread only."""

    def __init__(self, nodes, name, place):
        self.nodes, self.name, self.place = nodes, name, place
        self.data = nodes.context.path(name, "data")
        self.server = None
        self.is_stopped = False

    def start(self):
        settings = {**self.nodes.settings, "cluster.name": self.name}
        secret = {"EARSHOT_DATABASE_URL": self.nodes.database.url, "EARSHOT_CLUSTER_KEY": self.nodes.key}
        listens = [f"{self.place.address}:{port}" for port in (1935, 8080)]
        self.server = Server(self.nodes.context.earshot, self.data, settings, secret, self.place.under, listens=listens)
        # The first node's; all have the same tokens.
        self.nodes.token = self.nodes.token or self.server.token
        self.server.token = self.nodes.token

    @property
    def is_there(self):
        """Whether calls to it may be answered."""
        return self.server is not None and not self.is_stopped

    def kill(self):
        server, self.server = self.server, None
        server.kill()

    def stop(self):
        """SIGSTOP, and SIGCONT by ``go_on``."""
        self.is_stopped = True
        os.kill(self.server.pid, signal.SIGSTOP)

    def go_on(self):
        os.kill(self.server.pid, signal.SIGCONT)
        self.is_stopped = False


class Nodes:
    """All nodes of one database. Owned by the kind; calls come from any thread."""

    # Seconds: a node that stands still holds up whoever has just called it.
    PATIENCE = 8

    def __init__(self, context, database, settings, places):
        self.context, self.database, self.settings = context, database, settings
        self.key = secrets.token_urlsafe(48)
        self.token = None
        self.all = [Node(self, name, place) for name, place in zip(NAMES, places)]
        self._lock = threading.Lock()
        self._next = 0

    def __enter__(self):
        for node in self.all:
            node.start()
        return self

    def __exit__(self, *_):
        for node in self.all:
            if node.server:
                if node.is_stopped:
                    node.go_on()
                node.server.process.stop(grace=8)

    def there(self):
        return [node for node in self.all if node.is_there]

    def another(self):
        """The nodes that are there in turn."""
        there = self.there()
        with self._lock:
            self._next += 1
            return there[self._next % len(there)]

    def are_ready(self, seconds=60):
        """Whether all nodes take pushes in time."""
        return eventually(seconds, lambda: all(node.server.answers("/readyz") == 200 for node in self.all), 0.1)

    def tails(self):
        """The ends of all logs."""
        return "; ".join(f"{node.name}: {node.server.tail(300)}" for node in self.all if node.server)

    # MARK: As a server, for the ledger

    is_running = True

    def call(self, method, path, body=None, timeout=PATIENCE, headers=None):
        """As ``Server.call``, at one of the nodes."""
        return self.another().server.call(method, path, body, timeout, headers)
