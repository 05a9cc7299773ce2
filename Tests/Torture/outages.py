"""What happens to the machines of a cluster and to the network between them, and what must hold meanwhile and afterwards."""

import contextlib
import http.client
import threading
import time

from media import Viewer
from networks import both_ways
from tools import eventually

# Seconds: the longest that a device may be away after its node's end, and a busy machine's share.
BACK, SLACK = 15, 30
# For so long a node stands still or is cut off at least, in the long form: longer than its lease. In the short one until another has ended its pushes.
STILL = 15
# Seconds from a promotion to the first room. A primary whose machine is gone answers no connection: each attempt has to time out first.
PROMOTED, VANISHED = 3, 15
# Between two frames of a viewer whose stream nothing happens to, and how many it waits for first.
PICTURE, FRAMES = 5, 4
# A call at a node whose database does not answer: its connection has to be given up, and each of two databases to be tried.
REFUSES = 20
# A call sent on to a node that does not answer.
SENT_ON = 10
# How long a primary is missed before its standby is promoted, and a standby before it is back: in the short form, in the long one.
MISSED = (1, 4), (5, 20)


class _Call(threading.Thread):
    """A call that may take long. `status` is None until it is answered, or if it never was."""

    def __init__(self, node, method, path, body, patience):
        super().__init__(daemon=True)
        self.status = self.seconds = None
        self._words = node, method, path, body, patience
        self.start()

    def run(self):
        node, method, path, body, patience = self._words
        began = time.monotonic()
        with contextlib.suppress(OSError, http.client.HTTPException):
            self.status = node.server.call(method, path, body, timeout=patience)[0]
        self.seconds = time.monotonic() - began


class Outages:
    """One fault after the other. Used by the round's thread."""

    def __init__(self, context, network, pair, nodes, pushers, operator):
        self.context, self.network, self.pair, self.nodes = context, network, pair, nodes
        self.pushers, self.operator = pushers, operator
        # Milliseconds, by what is measured.
        self.figures = {}
        self._slack = SLACK if context.is_short else 0
        self._still = 0 if context.is_short else STILL
        self._missed = MISSED[0 if context.is_short else 1]

    # MARK: Nodes

    def kill_node(self):
        node = self.context.random.choice(self.nodes.all)
        with self.operator.fault():
            theirs = self._pushers_of(node)
            began = time.monotonic()
            node.kill()
            self._are_back(theirs, began, "ms from a node's kill to its devices' next push")
            self.context.count("kills of a node")
        node.start()

    def stop_node(self):
        node = self.context.random.choice(self.nodes.all)
        with self.operator.fault():
            theirs = self._pushers_of(node)
            began = time.monotonic()
            node.stop()
            try:
                self._are_back([pusher for pusher in theirs if not pusher.is_patient], began, "ms from a node's stop to its impatient devices' next push")
                self._is_fenced(node, began, "ms from a node's stop to its fence")
                time.sleep(max(0.0, began + self._still - time.monotonic()))
            finally:
                on = time.monotonic()
                node.go_on()
            patient = [pusher for pusher in theirs if pusher.is_patient and not pusher.live_after(began)]
            self._are_back(patient, on, "ms from a node's going on to its patient devices' next push")
            self.context.count("stops of a node")

    # MARK: The database

    def kill_database(self):
        with self.operator.fault():
            live, began = self._live(), time.monotonic()
            self.pair.kill()
            with self._watched(live, "without the database"):
                time.sleep(self.context.random.uniform(1, 4))
                self._are_uncut(live, began, "with the database")
                self.pair.again()
                self._first_room("ms from the database's return to the first room", 60)
            self._are_uncut(live, began, "with the database, when it was back")
            self.context.count("kills of the database")

    def promote(self):
        """The primary is killed, or its machine is gone without a word, and the standby takes its place."""
        random = self.context.random
        has_vanished = random.random() < 0.5
        pause = random.uniform(*self._missed)
        others = [self.pair.standby.place, *(node.place for node in self.nodes.all)]
        ways = both_ways([self.pair.primary.place], others) if has_vanished else []
        what, limit = ("a primary that vanished", VANISHED) if has_vanished else ("a primary's kill", PROMOTED)
        with self.operator.fault():
            live, began = self._live(), time.monotonic()
            # Some devices lose their network meanwhile, and try on every node until one can write.
            gone, live = live[::4], [pusher for number, pusher in enumerate(live) if number % 4]
            with self.network.cut(ways), contextlib.ExitStack() as watching:
                if not has_vanished:
                    self.pair.kill()
                watching.enter_context(self._watched(live, "without the primary"))
                moved = time.monotonic()
                for pusher in gone:
                    pusher.desert()
                time.sleep(pause)
                self._are_uncut(live, began, "with the primary")
                promoted = time.monotonic()
                former = self.pair.promote()
                self._first_room(f"ms from the promotion after {what} to the first room", limit + self._slack)
                # One that has tried its former node again went on there without a database.
                self._are_back(gone, moved, f"ms from the promotion after {what} to the push of devices that came meanwhile", promoted)
                former.kill()
            self.pair.renew(former)
            self.context.expect(self.nodes.are_ready(), "not all nodes are ready after a promotion")
            # Until a node that had been forgotten would have been fenced.
            time.sleep(self._still)
            self._are_uncut(live, began, "after a promotion")
            self._are_uncut(gone, promoted, "that had come while there was no primary")
            self._lay_ghosts(gone, "a promotion")
            self.context.count("promotions" if not has_vanished else "promotions for a primary that vanished")

    def lose_standby(self):
        """No commit is confirmed without the standby: one that waits longer than a node does is in doubt until the standby is back."""
        context = self.context
        with self.operator.fault():
            live, began = self._live(), time.monotonic()
            self.pair.standby.kill()
            room = _Call(context.random.choice(self.nodes.all), "POST", "rooms", {"roomId": f"unsure{int(began * 1000)}"}, REFUSES + self._missed[1])
            with self._watched(live, "without the standby"):
                time.sleep(context.random.uniform(*self._missed))
                context.expect(room.status in (None, 503), f"a room was answered {room.status} without the standby")
                self._are_uncut(live, began, "without the standby")
                self.pair.standby.again()
                self._first_room("ms from the standby's return to the first room", PROMOTED + self._slack)
            room.join()
            context.expect(room.status in (201, 503), f"a room asked for without the standby was answered {room.status}")
            self._are_uncut(live, began, "with the standby's return")
            context.count("kills of the standby")

    def _first_room(self, what, seconds):
        since = time.monotonic()
        name = f"back{int(since * 1000)}"

        def is_made():
            with contextlib.suppress(OSError, http.client.HTTPException):
                return self.nodes.call("POST", "rooms", {"roomId": name}, timeout=2)[0] in (200, 201, 409)
            return False

        self.context.expect(eventually(seconds, is_made, 0.05), f"{what}: not after {seconds} s: {self.nodes.tails()}")
        self._figure(what, [time.monotonic() - since])

    # MARK: Partitions

    def lose_database(self):
        """A node and both databases do not see each other."""
        node = self.context.random.choice(self.nodes.all)
        self._isolate(node, both_ways([node.place], self.pair.places), "a node cut off from the database")

    def lose_half(self):
        """The same one way: what a node asks is lost, or what the databases answer."""
        node = self.context.random.choice(self.nodes.all)
        asks = [(node.place, place) for place in self.pair.places]
        if self.context.random.random() < 0.5:
            self._isolate(node, asks, "a node whose words are lost")
        else:
            self._isolate(node, [(other, one) for one, other in asks], "a node that hears nothing")

    def _isolate(self, node, ways, what):
        """The others end its pushes when its lease is over. It knows nothing of that, and goes on, until it is back."""
        context = self.context
        with self.operator.fault():
            theirs = self._pushers_of(node)
            with self.network.cut(ways):
                began = time.monotonic()
                said = eventually(20 + self._slack, lambda: node.server.answers("/readyz") == 503, 0.1)
                context.expect(said, f"{what}: /readyz of {node.name} does not say so: {node.server.tail(300)}")
                self._figure(f"ms until {what} says that it is not ready", [time.monotonic() - began])
                room = _Call(node, "POST", "rooms", {"roomId": f"alone{int(began * 1000)}"}, REFUSES + self._slack)
                with self._watched([pusher for pusher in theirs if pusher.node is node], f"at {what}") as watched:
                    self._is_fenced(node, began, f"ms until {what} is fenced")
                    open_pushes = f"SELECT p.sequence FROM pushes p JOIN nodes n ON n.number = p.node WHERE n.name = '{node.name}' AND p.ended_at IS NULL"
                    ended = eventually(5 + self._slack, lambda: not self.pair.rows(open_pushes), 0.1)
                    context.expect(ended, f"{what}: {node.name} is fenced, and its pushes are not ended")
                    self._are_uncut(theirs, began, f"of {what}")
                    # Some devices do not wait.
                    gone, moved = [pusher for pusher in theirs if pusher.node is node and pusher is not watched][::2], time.monotonic()
                    for pusher in gone:
                        pusher.desert()
                    self._are_back(gone, moved, f"ms from leaving {what} to the next push")
                    time.sleep(max(0.0, began + self._still - time.monotonic()))
                    # In the short form it may wait still.
                    if room.seconds is not None or not context.is_short:
                        room.join()
                        context.expect(room.status == 503, f"{what}: {node.name} answers a room with {room.status}: {node.server.tail(300)}")
                        self._figure(f"ms of a call that {what} refuses", [room.seconds])
                stayed = [pusher for pusher in theirs if pusher.node is node and not pusher.live_after(began)]
                healed = time.monotonic()
            self._are_back(stayed, healed, f"ms from the return of {what} to its devices' next push")
            ready = eventually(30 + self._slack, lambda: node.server.answers("/readyz") == 200, 0.05)
            context.expect(ready, f"{what}: {node.name} is not ready again: {node.server.tail(300)}")
            self._figure(f"ms from the return of {what} until it is ready", [time.monotonic() - healed])
            self._lay_ghosts(gone, what)
            self._are_uncut([pusher for pusher in gone if pusher.live_after(moved)], healed, f"elsewhere with the return of {what}")
            context.count(f"partitions: {what}")

    def lose_node(self):
        """Two nodes do not see each other, or one not the other, and both see the database: calls sent on get 503, and that is all."""
        context, witness = self.context, self.pushers[0]
        if not context.expect(witness.node, f"{witness.stream} is not live before a partition of nodes"):
            return
        near, far = witness.node, context.random.choice([node for node in self.nodes.all if node is not witness.node])
        ways = both_ways([near.place], [far.place])
        if context.random.random() < 0.5:
            ways = [context.random.choice(ways)]
        path = f"streams/live/{witness.stream}"
        # Where a call has been sent on just now, a connection stands that does not know.
        stands = not context.is_short and context.random.random() < 0.5
        if stands:
            context.expect(self._status(far, path) == 200, f"GET {path} at node {far.name} is not sent on before the partition")
        with self.operator.fault():
            live = self._live()
            with self.network.cut(ways):
                began = time.monotonic()
                call = _Call(far, "GET", path, None, SENT_ON + self._slack)
                for node in (near, far):
                    status = self._status(node, f"rooms/{witness.stream}")
                    context.expect(status == 200, f"with {near.name} and {far.name} cut off from each other, a room is answered {status} at {node.name}")
                call.join()
                context.expect(call.status == 503, f"GET {path} at node {far.name}, which does not reach {near.name}, was answered {call.status}")
                self._figure(f"ms of a call to a node that the other does not reach{', by a connection that stands' if stands else ''}", [call.seconds])
                time.sleep(max(0.0, began + self._still - time.monotonic()))
                self._are_uncut(live, began, "by a partition of nodes")
                well = eventually(
                    10 + self._slack, lambda: all(node.server.answers("/readyz") == 200 and self._state(node) == "running" for node in self.nodes.all), 0.2)
                context.expect(well, f"with {near.name} and {far.name} cut off from each other, not all nodes are well: {self.nodes.tails()}")
            healed = time.monotonic()
            again = eventually(10 + self._slack, lambda: self._status(far, path) == 200, 0.1)
            context.expect(again, f"GET {path} at node {far.name} is not sent on after the partition")
            self._figure("ms from the end of a partition of nodes to the next call sent on", [time.monotonic() - healed])
            self._are_uncut(live, began, "after a partition of nodes")
            context.count("partitions: nodes from each other")

    # MARK: Looking

    def _status(self, node, path):
        with contextlib.suppress(OSError, http.client.HTTPException):
            return node.server.call("GET", path, timeout=30)[0]
        return None

    @contextlib.contextmanager
    def _watched(self, pushers, where):
        """Somebody comes to play one of their streams, which goes on for as long as it is pushed. Gives its pusher."""
        began = time.monotonic()
        # Each is asked once: it may end at any time.
        live = [(pusher, node, name) for pusher, node, name in ((pusher, pusher.node, pusher.pushed) for pusher in pushers) if node and name]
        if not live:
            yield None
            return
        pusher, node, name = self.context.random.choice(live)

        def stands():
            return not pusher.ended_after(began) and not pusher.was_touched(began)

        with Viewer(node.server.http_port, name, node.server.host) as viewer:
            sees = viewer.sees(10, FRAMES)
            viewer.watch()
            yield pusher
            gap, joins = viewer.gap(), viewer.joins
        if stands():
            self.context.expect(sees and joins == 1 and gap < PICTURE, f"a viewer {where} of {name}: sees it at first: {sees}; {joins} joins, at most {gap:.1f} s between frames")
            self._figure(f"ms between two frames of a viewer {where}", [gap])
            self.context.count("pictures watched")

    def _is_fenced(self, node, since, what):
        fenced = eventually(90, lambda: self._state(node) in ("fenced", "gone"), 0.2)
        self.context.expect(fenced, f"{what}: node {node.name} is not after 90 s: {self.nodes.tails()}")
        self._figure(what, [time.monotonic() - since])

    def _state(self, node):
        with contextlib.suppress(OSError):
            return self.pair.rows(f"SELECT state FROM nodes WHERE name = '{node.name}'")[0]["state"]
        return None

    def _pushers_of(self, node):
        return [pusher for pusher in self.pushers if pusher.node is node and not pusher.is_barred]

    def _live(self):
        return [pusher for pusher in self.pushers if pusher.node and not pusher.is_barred]

    def _are_uncut(self, pushers, since, how):
        cut = [pusher.stream for pusher in pushers if pusher.ended_after(since) and not pusher.was_touched(since)]
        self.context.expect(not cut, f"{len(cut)} of {len(pushers)} pushes were cut {how}: {cut[:5]}: {self.nodes.tails()}")

    def _are_back(self, pushers, since, what, origin=None):
        """Whether all are live again after `since`; how long that took from `origin`."""
        origin = origin or since
        limit = BACK + self._slack
        back = eventually(limit, lambda: all(pusher.live_after(since) or pusher.is_barred for pusher in pushers), 0.05)
        late = [pusher.stream for pusher in pushers if not pusher.live_after(since) and not pusher.is_barred]
        self.context.expect(back, f"{what}: not after {limit} s: {late[:5]}: {self.nodes.tails()}")
        self._figure(what, [max(0.0, pusher.live_after(since) - origin) for pusher in pushers if pusher.live_after(since) and not pusher.was_touched(since)])

    def _lay_ghosts(self, pushers, what):
        """The connections that devices have left are ended where they stand."""
        eventually(10 + self._slack, lambda: all(ghost.has_ended.is_set() for pusher in pushers for ghost in pusher.ghosts), 0.1)
        standing = sum(pusher.lay_ghosts() for pusher in pushers)
        self.context.expect(not standing, f"after {what} {standing} connections of devices that push elsewhere now still stand")

    def _figure(self, what, seconds):
        self.figures.setdefault(what, []).extend(round(value * 1000) for value in seconds)
