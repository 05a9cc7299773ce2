"""Who forbids, resumes, kicks and closes on nodes where the stream is not, and looks when that holds everywhere."""

import contextlib
import http.client
import threading
import time

# Seconds until a change of one node must hold on the others, and what a busy machine may take.
HOLDS, LIMIT = 1, 30
# Seconds of a ban: devices try on every node meanwhile.
BAN = 3.5
# Seconds for which a call that is refused is made again.
TRIES = 60
# Seconds after a fault in which a node may carry out what it had no answer for.
LATE = 3
_WORDS = {"forbid": 403, "close": 410}


class Operator(threading.Thread):
    """One after the other: each change is watched until it holds. Owned by the round."""

    def __init__(self, context, nodes, pushers):
        super().__init__(daemon=True)
        self.context, self.nodes, self.pushers = context, nodes, pushers
        # The seed's choices stay the same, whatever other threads draw.
        self.random = type(context.random)(context.seed + 1)
        self.figures = {}
        self.answers = self.done = 0
        # (stream, from, until): who begins to push between does not go live.
        self.bans = []
        self._faults = 0
        self._changed = 0
        self._ended = threading.Event()

    @contextlib.contextmanager
    def fault(self):
        """While a node or the database is away, what an operator asks may fail or come late."""
        self._faults += 1
        self._changed += 1
        try:
            yield
        finally:
            self._faults -= 1
            self._changed += 1

    def ask_to_end(self):
        self._ended.set()

    def does(self, count, seconds):
        """Waits until so many more changes are done."""
        wanted, end = self.done + count, time.monotonic() + seconds
        while self.done < wanted and time.monotonic() < end and self.is_alive():
            time.sleep(0.05)

    def run(self):
        while not self._ended.wait(0.2):
            free = [pusher for pusher in self.pushers if pusher.pushed == pusher.stream]
            if not free:
                continue
            pusher = self.random.choice(free)
            act = self.random.choice((self._forbid, self._forbid, self._kick, self._close))
            try:
                act(pusher)
            except (OSError, http.client.HTTPException):
                # The node that was asked is away.
                self._settle()
            finally:
                pusher.bar(False)
            self.done += 1

    # MARK: Changes

    def _elsewhere(self, pusher):
        """A node where the stream is not."""
        there = [node for node in self.nodes.there() if node is not pusher.node]
        return self.random.choice(there) if there else self.nodes.another()

    def _settle(self):
        """A call without an answer may be carried out as soon as its node is well again: until then the device counts as kept out."""
        while self._faults and not self._ended.wait(0.1):
            pass
        self._ended.wait(LATE)

    def _ask(self, node, path, body=None):
        status, answer = node.server.call("POST", path, body, timeout=self.nodes.PATIENCE)
        if status < 300:
            self.answers += 1
            return True
        if status != 503:
            self.context.find(f"POST {path} at node {node.name} was answered {status}: {str(answer)[:300]}")
        return False

    def _forbid(self, pusher):
        changed, stream = self._changed, pusher.stream
        pusher.bar(True)
        asked = time.monotonic()
        is_forbidden = False
        try:
            is_forbidden = self._ask(self._elsewhere(pusher), f"rooms/{stream}/forbid", {"seconds": 600})
        except (OSError, http.client.HTTPException):
            self._settle()
        if not is_forbidden:
            # It may hold all the same.
            self._resume(stream)
            return
        begin = self._holds("forbid", pusher, stream, asked, changed)
        self._ended.wait(max(0.0, asked + BAN - time.monotonic()))
        self.bans.append((stream, begin, time.monotonic()))
        self._resume(stream)

    def _resume(self, stream):
        """Tried until it is answered: the device waits for it."""
        end = time.monotonic() + TRIES
        while time.monotonic() < end:
            try:
                if self.nodes.call("POST", f"rooms/{stream}/resume")[0] in (200, 204, 404, 409):
                    self.answers += 1
                    return
            except (OSError, http.client.HTTPException):
                self._settle()
            time.sleep(0.2)
        self.context.find(f"the ban of {stream} could not be lifted for {TRIES} s")

    def _close(self, pusher):
        changed, stream = self._changed, pusher.stream
        pusher.bar(True)
        asked = time.monotonic()
        is_closed, end = False, asked + TRIES
        while not is_closed and time.monotonic() < end:
            with contextlib.suppress(OSError, http.client.HTTPException):
                is_closed = self._ask(self._elsewhere(pusher), f"rooms/{stream}/close")
            time.sleep(0 if is_closed else 0.2)
        if is_closed:
            self.bans.append((stream, self._holds("close", pusher, stream, asked, changed), float("inf")))
        pusher.generation += 1

    def _kick(self, pusher):
        changed, stream = self._changed, pusher.stream
        pusher.bar(True)
        node = self._elsewhere(pusher)
        if not self._ask(node, f"rooms/{stream}/join", {"userId": pusher.user}):
            return
        asked = time.monotonic()
        if self._ask(node, f"rooms/{stream}/members/{pusher.user}/kick", {"seconds": 3}) and self._is_quiet(changed):
            self._is_cut("kick", pusher, asked, changed)
            # Until the device may come back.
            self._ended.wait(3)

    # MARK: Looking

    def _is_quiet(self, changed):
        return changed == self._changed and not self._faults

    def _holds(self, what, pusher, stream, asked, changed):
        """The time from which on it holds on every node."""
        answered = time.monotonic()
        self._figure(f"ms of a {what} call", answered - asked)
        waiting = self.nodes.there()
        while waiting and time.monotonic() < answered + LIMIT:
            waiting = [node for node in waiting if self._status(node, stream) != _WORDS[what]]
            if not self._is_quiet(changed):
                return answered + LIMIT
            time.sleep(0.02 if waiting else 0)
        held = time.monotonic()
        seconds = held - answered
        self.context.expect(not waiting, f"{what} of {stream} does not hold after {LIMIT} s on the nodes {[node.name for node in waiting]}")
        self._figure(f"ms from the answer of a {what} until it holds on every node", seconds)
        if seconds > HOLDS:
            self.context.count(f"{what} later than {HOLDS} s")
        self._is_cut(what, pusher, asked, changed)
        return held

    def _status(self, node, stream):
        """How a viewer is answered; None while it waits for the stream."""
        server = node.server
        if server is None:
            return None
        connection = http.client.HTTPConnection(server.host, server.http_port, timeout=0.3)
        try:
            connection.request("GET", f"/live/{stream}.flv")
            return connection.getresponse().status
        except (OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()

    def _is_cut(self, what, pusher, asked, changed):
        end = asked + LIMIT
        while pusher.node and not pusher.ended_after(asked) and time.monotonic() < end and self._is_quiet(changed):
            time.sleep(0.01)
        cut = pusher.ended_after(asked)
        if self._is_quiet(changed):
            self.context.expect(cut or not pusher.node, f"{what}: {pusher.stream} is still pushed after {LIMIT} s")
        if cut:
            self._figure(f"ms from a {what} call on another node until the device is cut", cut - asked)

    def _figure(self, what, seconds):
        self.figures.setdefault(what, []).append(round(seconds * 1000))

    def judge(self):
        """By the devices' logs: none went live where it was kept out."""
        for pusher in self.pushers:
            tried = {}
            for at, node, what, stream in list(pusher.log):
                if what == "try":
                    tried[stream] = at
                elif what == "live":
                    self._judge_live(stream, tried.get(stream, at), at, node)
        self.context.count("bans, kicks and closes", self.done)

    def _judge_live(self, stream, began, at, node):
        for banned, begin, end in self.bans:
            if stream == banned and began > begin and at < end:
                self.context.find(f"{stream} went live on node {node} {at - begin:.1f} s after its ban or end held everywhere")
