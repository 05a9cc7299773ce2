"""Three nodes on a PostgreSQL with a standby, each in a network of its own, with devices that push to any of them: nodes are killed, stand still
and are cut off, the primary dies and its standby is promoted, and operators forbid, kick and close meanwhile. Nothing that was answered is lost, and
no stream is on two nodes."""

import contextlib
import http.client
import os
import signal
import threading
import time

from followers import Follower
from ledger import Ledger
from networks import Network
from nodes import NAMES, Nodes
from operators import Operator
from outages import Outages
from postgres import Pair
from pushers import Pusher, first_tags
from targets import Target, judge
from tools import eventually

SETTINGS = {
    "rooms.policy.neverStarted": "12h",
    "rooms.policy.grace": "10m",
    "recording.minFree": "0B",
    "webhooks.timeout": "5s",
    "webhooks.retryInterval": "300ms",
    "webhooks.maxRetryInterval": "300ms",
    # Clients are not on the nodes' machines.
    "access.apiFrom": Network.ALL,
    "access.publishFrom": Network.ALL,
    "access.playFrom": Network.ALL,
    "outbound.allowPrivate": Network.ALL,
    "rooms.autoCreate": "always",
}
# Rooms without --count: of the short form, of the long one.
ROOMS = 30, 100
# Seconds for which a stream may have two open pushes on one node: the first is over there, and that is not in the database yet.
TURN = 15
# Seconds between the rooms of a worker: of the short form, of the long one, which must not have too many at its end.
PAUSE = 0.2, 1.0


def run(context):
    with contextlib.ExitStack() as stack:
        network = stack.enter_context(Network(len(NAMES) + 2))
        target = Target("good", context.random.randrange(1 << 32), network.HUB)
        stack.callback(target.close)
        pair = stack.enter_context(Pair(os.path.dirname(context.path("postgres", "1")), network.places[len(NAMES):]))
        settings = {**SETTINGS, "webhooks.urls": target.url}
        nodes = stack.enter_context(Nodes(context, pair, settings, network.places[: len(NAMES)]))
        life = _Life(context, network, pair, nodes, target)
        stack.callback(life.end)
        life.begin()
        for _ in context.each_round():
            life.round()
        life.judge()


class _Life:
    """One cluster and all that happens to it."""

    def __init__(self, context, network, pair, nodes, target):
        self.context, self.pair, self.nodes, self.target = context, pair, nodes, target
        tags = first_tags(context.sample)
        count = context.rooms or ROOMS[0 if context.is_short else 1]
        self.pushers = [Pusher(nodes, number, tags, context.random.random() < 0.5) for number in range(count)]
        self.followers = [Follower(node) for node in nodes.all]
        self.ledger = Ledger(context)
        # The first device is one that nobody keeps out.
        self.operator = Operator(context, nodes, self.pushers[1:])
        self.outages = Outages(context, network, pair, nodes, self.pushers, self.operator)
        self.stop = threading.Event()
        self.workers = [threading.Thread(target=self._work, args=(number,), daemon=True) for number in range(2)]
        self.watch = threading.Thread(target=self._watch, daemon=True)
        self.looks = 0

    def begin(self):
        context = self.context
        context.expect(self.nodes.are_ready(), f"not all nodes are ready: {self.nodes.tails()}")
        for thread in (*self.followers, *self.pushers, *self.workers, self.watch):
            thread.start()
        context.expect(self._all_live(60), f"not all devices are live at first: {self._missing()}")
        self.operator.start()

    def end(self):
        self.stop.set()
        self.operator.ask_to_end()
        for thread in (*self.followers, *self.pushers):
            thread.ask_to_end()
        for thread in (self.operator, self.watch, *self.workers, *self.pushers):
            if thread.is_alive():
                thread.join(20)

    # MARK: What goes on

    def _work(self, worker):
        """Rooms from their creation to their end, each call at another node."""
        number = 0
        while not self.stop.is_set():
            number += 1
            try:
                self.ledger.work_on_one(self.nodes, f"w{worker}-{number}", number % 4 == 0, may_refuse=True)
            except (OSError, http.client.HTTPException):
                # It may have happened, or not.
                pass
            self.stop.wait(PAUSE[0 if self.context.is_short else 1])

    def _watch(self):
        """No stream has open pushes on two nodes; nor two on one, but for as long as the end of the first waits for its turn there."""
        since, told = {}, set()
        while not self.stop.wait(0.5):
            try:
                found = self.pair.rows(
                    "SELECT app, name, array_agg(node) AS nodes FROM pushes WHERE ended_at IS NULL GROUP BY app, name HAVING count(*) > 1")
            except OSError:
                # Away, at this moment.
                continue
            self.looks += 1
            since = {row["name"]: since.get(row["name"], time.monotonic()) for row in found}
            for row in found:
                name, seconds = row["name"], time.monotonic() - since[row["name"]]
                if name not in told and (len(set(row["nodes"])) > 1 or seconds > TURN):
                    told.add(name)
                    self.context.find(f"{row['app']}/{name} has open pushes on the nodes {row['nodes']}, for {seconds:.1f} s")
            self.context.count("looks with two open pushes on one node", len(found) > 0)

    def _all_live(self, seconds):
        return eventually(seconds, lambda: not self._missing(), 0.1)

    def _missing(self):
        return [pusher.stream for pusher in self.pushers if pusher.node is None and not pusher.is_barred]

    # MARK: Rounds

    def round(self):
        for fault in self._faults():
            fault()
            name = fault.__name__
            if not self.context.expect(self.nodes.are_ready(), f"not all nodes are ready after {name}: {self.nodes.tails()}"):
                return
            self.context.expect(self._all_live(60), f"after {name} not live again: {self._missing()}: {self.nodes.tails()}")
            for pusher in self.pushers:
                pusher.all_is_well()
            # Operators have some seconds without a fault, too.
            self.operator.does(1 if self.context.is_short else 2, 20)

    def _faults(self):
        """Of the short form each once; of the long one by what happens more often, and the partitions in turn."""
        outages = self.outages
        faults = [outages.kill_node, outages.stop_node, outages.kill_database, outages.lose_standby, outages.promote]
        partitions = [outages.lose_database, outages.lose_half, outages.lose_node]
        if self.context.is_short:
            faults += partitions
        else:
            faults += [outages.kill_node] * 3 + [partitions[self.context.round % 3]]
        self.context.random.shuffle(faults)
        return faults

    # MARK: Judging

    def judge(self):
        context = self.context
        self.operator.ask_to_end()
        self.operator.join(30)
        self.stop.set()
        for worker in self.workers:
            worker.join(30)
        context.expect(self._all_live(60), f"not live at the end: {self._missing()}")
        for pusher in self.pushers:
            pusher.ask_to_end()
        for pusher in self.pushers:
            pusher.join(20)
        settled = eventually(60, self._is_settled, 0.2)
        context.expect(settled, "pushes are open, or deliveries pending, 60 s after the last device went")
        server = self.nodes.all[0].server
        events = self.ledger.compare(server)
        self._judge_tables(events)
        self._judge_followers(events)
        judge(context, self.target, self.target.accepted(), events, {event["id"]: event for event in events})
        self.operator.judge()
        self._judge_database()
        self._judge_end()
        self._report(events)

    def _is_settled(self):
        with contextlib.suppress(OSError, http.client.HTTPException):
            pending = self.nodes.all[0].server.get("webhooks/deliveries?state=pending&limit=1")["list"]
            return not pending and not self.pair.rows("SELECT sequence FROM pushes WHERE ended_at IS NULL LIMIT 1")
        return False

    def _judge_tables(self, events):
        context, rows = self.context, self.pair.rows
        head = rows("SELECT h.event AS head, (SELECT count(*) FROM events) AS count, (SELECT max(id) FROM events) AS last FROM heads h")[0]
        context.expect(head["head"] == head["count"] == head["last"], f"the events in the database have a gap: {head}")
        context.expect(len(events) == head["count"], f"the API has {len(events)} of {head['count']} events")
        rooms = {row["id"] for row in rows("SELECT id FROM rooms")}
        pushed = {row["name"]: row["count"] for row in rows("SELECT name, count(*) AS count FROM pushes WHERE app = 'live' GROUP BY name")}
        for pusher in self.pushers:
            for name, lives in pusher.lives.items():
                context.expect(name in rooms, f"the room {name}, which was pushed to, is lost")
                context.expect(pushed.get(name, 0) >= lives, f"{name}: {lives} pushes were answered, and {pushed.get(name, 0)} are there")
        self._judge_order(events)
        keepers = rows("SELECT n.name FROM duties d JOIN nodes n ON n.number = d.node WHERE d.expires_at > clock_timestamp()")
        context.expect(len(keepers) == 1, f"keepers at the end: {keepers}")

    def _judge_order(self, events):
        """One push of a stream ends before the next begins, in the order of commits: the times of two nodes say less."""
        running = {}
        for event in events:
            room, sequence = event["roomId"], event["data"].get("sequence")
            if event["kind"] == "stream.begin":
                self.context.expect(room not in running, f"{room}: push {sequence} began before {running.get(room)} had ended")
                running[room] = sequence
            elif event["kind"] == "stream.end" and running.get(room) == sequence:
                del running[room]
        self.context.expect(len(running) == 0, f"{len(running)} pushes have no end, such as {list(running.items())[:3]}")

    def _judge_followers(self, events):
        last = events[-1]["id"]
        told = {event["id"]: (event["kind"], event["roomId"], event["number"]) for event in events}
        for follower in self.followers:
            eventually(30, lambda follower=follower: follower.ids and follower.ids[-1] >= last, 0.1)
        for follower in self.followers:
            name = follower.node.name
            for problem in follower.problems:
                self.context.find(f"the follower of node {name} {problem}")
            missing = last - len(follower.ids)
            self.context.expect(missing <= 0, f"the follower of node {name} has {len(follower.ids)} of {last} events")
            wrong = [(number, content, told.get(number)) for number, content in zip(follower.ids, follower.contents) if content != told.get(number)]
            self.context.expect(not wrong, f"the follower of node {name} was told of {len(wrong)} events that are others now, such as {wrong[:1]}")
            follower.ask_to_end()

    def _judge_database(self):
        """A standby that is promoted now has all that the primary has."""
        count = "SELECT (SELECT count(*) FROM events) AS events, (SELECT count(*) FROM rooms) AS rooms, (SELECT count(*) FROM pushes) AS pushes"
        found = []

        def same():
            with contextlib.suppress(OSError):
                found[:] = self.pair.standby.rows(count), self.pair.rows(count)
            return len(found) == 2 and found[0] == found[1]

        self.context.expect(eventually(20, same, 0.2), f"of the standby and of the primary: {found}")

    def _judge_end(self):
        for node in self.nodes.all:
            node.server.process.popen.send_signal(signal.SIGTERM)
        for node in self.nodes.all:
            status = node.server.ended_by_itself(20)
            self.context.expect(status == 0, f"SIGTERM ended node {node.name} with {status}: {node.server.tail()}")

    def _report(self, events):
        context = self.context
        context.count("rooms", len(self.ledger.rooms) + sum(len(pusher.lives) for pusher in self.pushers))
        context.count("answers", self.ledger.answers + self.operator.answers)
        context.count("pushes", self.pair.rows("SELECT count(*) AS count FROM pushes")[0]["count"])
        context.count("events", len(events))
        context.count("webhooks", len(self.target.accepted()))
        context.count("looks for a stream on two nodes", self.looks)
        context.report({**self.outages.figures, **self.operator.figures})
