"""Three nodes on one PostgreSQL, with devices that push to any of them: a node is killed, a node stands still for longer than its lease, the
database is killed, and operators forbid, kick and close meanwhile. Nothing that was answered is lost, and no stream is on two nodes."""

import contextlib
import http.client
import os
import signal
import threading
import time

from followers import Follower
from ledger import Ledger
from nodes import Nodes
from operators import Operator
from postgres import Database
from pushers import Pusher, first_tags
from targets import Target, judge
from tools import eventually

SETTINGS = {
    "rooms.policy.neverStarted": "12h",
    "rooms.policy.grace": "10m",
    "recording.minFree": "0B",
    "webhooks.timeout": "5s",
    "webhooks.retries": "1000",
    "webhooks.retryInterval": "300ms",
}
# Rooms without --count: of the short form, of the long one.
ROOMS = 30, 100
# Seconds: the longest that a device may be away after its node's end, and a busy machine's share.
BACK, SLACK = 15, 30
# A node that stands still: longer than its lease, and until another has ended its pushes.
STILL = 15


def run(context):
    target = Target("good", context.random.randrange(1 << 32))
    with contextlib.ExitStack() as stack:
        stack.callback(target.close)
        database = stack.enter_context(Database(os.path.dirname(context.path("postgres", "cluster"))))
        nodes = stack.enter_context(Nodes(context, database, {**SETTINGS, "webhooks.urls": target.url}))
        life = _Life(context, database, nodes, target)
        stack.callback(life.end)
        life.begin()
        for _ in context.each_round():
            life.round()
        life.judge()


class _Life:
    """One cluster and all that happens to it."""

    def __init__(self, context, database, nodes, target):
        self.context, self.database, self.nodes, self.target = context, database, nodes, target
        tags = first_tags(context.sample)
        count = context.rooms or ROOMS[0 if context.is_short else 1]
        self.pushers = [Pusher(nodes, number, tags, context.random.random() < 0.5) for number in range(count)]
        self.followers = [Follower(node) for node in nodes.all]
        self.ledger = Ledger(context)
        self.operator = Operator(context, nodes, self.pushers)
        self.stop = threading.Event()
        self.workers = [threading.Thread(target=self._work, args=(number,), daemon=True) for number in range(2)]
        self.watch = threading.Thread(target=self._watch, daemon=True)
        # Milliseconds, by what is measured.
        self.figures = {}
        self.looks = 0

    def begin(self):
        context = self.context
        context.expect(self.nodes.are_ready(), f"not all nodes are ready: {self._tails()}")
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
                self.ledger.work_on_one(self.nodes, f"w{worker}-{number}", may_refuse=True)
            except (OSError, http.client.HTTPException):
                # It may have happened, or not.
                pass
            self.stop.wait(0.2)

    def _watch(self):
        """No stream has open pushes on two nodes, or two on one."""
        while not self.stop.wait(0.5):
            try:
                found = self.database.rows(
                    "SELECT app, name, array_agg(node) AS nodes FROM pushes WHERE ended_at IS NULL GROUP BY app, name HAVING count(*) > 1")
            except OSError:
                # Killed, at this moment.
                continue
            self.looks += 1
            for row in found:
                self.context.find(f"{row['app']}/{row['name']} has open pushes on the nodes {row['nodes']}")

    def _all_live(self, seconds):
        return eventually(seconds, lambda: not self._missing(), 0.1)

    def _missing(self):
        return [pusher.stream for pusher in self.pushers if pusher.node is None and not pusher.is_barred]

    def _tails(self):
        return "; ".join(f"{node.name}: {node.server.tail(300)}" for node in self.nodes.all if node.server)

    # MARK: Faults

    def round(self):
        faults = [self._kill_node, self._stop_node, self._kill_database]
        self.context.random.shuffle(faults)
        for fault in faults:
            fault()
            if not self.context.expect(self.nodes.are_ready(), f"not all nodes are ready after {fault.__name__}: {self._tails()}"):
                return
            self.context.expect(self._all_live(60), f"after {fault.__name__} not live again: {self._missing()}: {self._tails()}")
            # Operators have some seconds without a fault, too.
            self.operator.does(2, 20)

    def _kill_node(self):
        node = self.context.random.choice(self.nodes.all)
        with self.operator.fault():
            theirs = self._pushers_of(node)
            began = time.monotonic()
            node.kill()
            self._are_back(theirs, began, "ms from a node's kill to its devices' next push")
            self.context.count("kills of a node")
        node.start()

    def _stop_node(self):
        node = self.context.random.choice(self.nodes.all)
        with self.operator.fault():
            theirs = self._pushers_of(node)
            began = time.monotonic()
            node.stop()
            try:
                self._are_back([pusher for pusher in theirs if not pusher.is_patient], began, "ms from a node's stop to its impatient devices' next push")
                fenced = eventually(90, lambda: self._state(node) in ("fenced", "gone"), 0.2)
                self.context.expect(fenced, f"node {node.name} stands still, and no other has ended its work after 90 s: {self._tails()}")
                self._figure("ms from a node's stop to its fence", [time.monotonic() - began])
                time.sleep(max(0.0, began + STILL - time.monotonic()))
            finally:
                on = time.monotonic()
                node.go_on()
            patient = [pusher for pusher in theirs if pusher.is_patient and not pusher.live_after(began)]
            self._are_back(patient, on, "ms from a node's going on to its patient devices' next push")
            self.context.count("stops of a node")

    def _state(self, node):
        with contextlib.suppress(OSError):
            return self.database.rows(f"SELECT state FROM nodes WHERE name = '{node.name}'")[0]["state"]
        return None

    def _kill_database(self):
        with self.operator.fault():
            live = [pusher for pusher in self.pushers if pusher.node and not pusher.is_barred]
            began = time.monotonic()
            self.database.kill()
            time.sleep(self.context.random.uniform(1, 4))
            cut = [pusher.stream for pusher in live if pusher.ended_after(began) and not pusher.was_touched(began)]
            self.context.expect(not cut, f"pushes were cut with the database: {cut[:5]}")
            self.database.again()
            again = time.monotonic()
            made = eventually(60, lambda: self._can_write(again), 0.05)
            self.context.expect(made, f"no room could be made 60 s after the database was back: {self._tails()}")
            self._figure("ms from the database's return to the first room", [time.monotonic() - again])
            self.context.count("kills of the database")

    def _can_write(self, moment):
        with contextlib.suppress(OSError, http.client.HTTPException):
            return self.nodes.call("POST", "rooms", {"roomId": f"back{int(moment * 1000)}"})[0] in (200, 201, 409)
        return False

    def _pushers_of(self, node):
        return [pusher for pusher in self.pushers if pusher.node is node and not pusher.is_barred]

    def _are_back(self, pushers, since, what):
        limit = BACK + (SLACK if self.context.is_short else 0)
        back = eventually(limit, lambda: all(pusher.live_after(since) or pusher.is_barred for pusher in pushers), 0.05)
        late = [pusher.stream for pusher in pushers if not pusher.live_after(since) and not pusher.is_barred]
        self.context.expect(back, f"{what}: not after {limit} s: {late[:5]}: {self._tails()}")
        self._figure(what, [pusher.live_after(since) - since for pusher in pushers if pusher.live_after(since) and not pusher.was_touched(since)])

    def _figure(self, what, seconds):
        self.figures.setdefault(what, []).extend(round(value * 1000) for value in seconds)

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
        context.expect(settled, "pushes are open, or notices pending, 60 s after the last device went")
        server = self.nodes.all[0].server
        events = self.ledger.compare(server)
        self._judge_tables(events)
        self._judge_followers(events[-1]["id"])
        judge(context, self.target, self.target.accepted(), events, {event["id"]: event for event in events})
        self.operator.judge()
        self._judge_end()
        self._report(events)

    def _is_settled(self):
        with contextlib.suppress(OSError, http.client.HTTPException):
            pending = self.nodes.all[0].server.get("callbacks?state=pending&limit=1")["list"]
            return not pending and not self.database.rows("SELECT sequence FROM pushes WHERE ended_at IS NULL LIMIT 1")
        return False

    def _judge_tables(self, events):
        context, rows = self.context, self.database.rows
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

    def _judge_followers(self, last):
        for follower in self.followers:
            eventually(30, lambda follower=follower: follower.ids and follower.ids[-1] >= last, 0.1)
        for follower in self.followers:
            name = follower.node.name
            for problem in follower.problems:
                self.context.find(f"the follower of node {name} {problem}")
            missing = last - len(follower.ids)
            self.context.expect(missing <= 0, f"the follower of node {name} has {len(follower.ids)} of {last} events")
            follower.ask_to_end()

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
        context.count("pushes", sum(sum(pusher.lives.values()) for pusher in self.pushers))
        context.count("events", len(events))
        context.count("webhooks", len(self.target.accepted()))
        context.count("looks for a stream on two nodes", self.looks)
        context.report({**self.figures, **self.operator.figures})
