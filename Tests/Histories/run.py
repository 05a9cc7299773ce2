"""Makes a history: a server, clients that act on it at once, readers of its feed, and kills at seeded moments."""

import random
import time

from actors import Actor, Request, Shared
from history import Recorder
from readers import Poller, Subscriber, read_all
from server import Server

CLIENTS = 16
ROOMS = ("ash", "birch", "cedar", "dogwood", "elm", "fir")
# The longest that a run may take before it counts as stuck, whatever else the machine does.
MOST_SECONDS_AN_OPERATION = 0.2


def record(binary, folder, operations, kills, seed, fault=None, rooms=ROOMS):
    """Returns the entries of a history. Raises RuntimeError when the server does not do as a server must, whatever the history."""
    # Seconds between a client's calls: so few operations, too, last long enough for deadlines to come.
    thinking = 0.06 if operations <= 5_000 else 0.004
    recorder = Recorder(seed=seed, operations=operations, kills=kills, clients=CLIENTS, rooms=rooms)
    server = Server(binary, folder, recorder)
    chance = random.Random(f"{seed}/kills")
    part = operations / (kills + 1)
    moments = [round(part * (number + 1) + chance.uniform(-0.4, 0.4) * part) for number in range(kills)]
    shared = Shared(server, recorder, rooms, operations, thinking)
    actors, readers = [], []
    try:
        server.start()
        if fault:
            fault.attach(server)
        actors = [Actor(number, seed, shared) for number in range(CLIENTS)]
        readers = [
            Poller("short", server, recorder, 7, 0.02, seed), Poller("long", server, recorder, 1_000, 0.3, seed),
            Poller("room", server, recorder, 50, 0.1, seed, rooms[0]), Subscriber("websocket", server, recorder),
        ]  # fmt: skip
        for thread in actors + readers:
            thread.start()
        watch(server, shared, actors, readers, moments, chance, recorder, time.monotonic() + 60 + operations * MOST_SECONDS_AN_OPERATION)
        for reader in readers:
            reader.ends.set()
        for reader in readers:
            reader.join(30)
        if kills:
            # Answered changes also survive a kill during which no call was under way.
            server.kill()
            server.start()
        last_looks(shared, seed)
        read_all(server, recorder)
    finally:
        shared.failure = shared.failure or "ended"
        for reader in readers:
            reader.ends.set()
        if fault:
            fault.close()
        server.stop()
    return recorder.finish()


def watch(server, shared, actors, readers, moments, chance, recorder, until):
    """Kills the server at its moments, until all is done. On the thread that started it."""
    waiting = list(moments)
    while any(actor.is_alive() for actor in actors):
        recorder.look()
        if shared.failure:
            raise RuntimeError(f"a client failed: {shared.failure!r}")
        for reader in readers:
            if reader.failure:
                raise RuntimeError(f"reader {reader.name} failed: {reader.failure!r}")
        if time.monotonic() > until:
            raise RuntimeError(f"the clients are not done in time: {shared.done} of {shared.operations} operations")
        if waiting and shared.done >= waiting[0]:
            waiting.pop(0)
            time.sleep(chance.random() * 0.02)
            server.kill()
            time.sleep(chance.random() * 0.2)
            server.start()
        elif not server.process.is_running:
            raise RuntimeError(f"the server ended by itself: {server.process.text()[-800:]}")
        time.sleep(0.005)
    if shared.failure:
        raise RuntimeError(f"a client failed: {shared.failure!r}")


def last_looks(shared, seed):
    """Every room once more, when nobody acts."""
    observer = Actor(CLIENTS, seed, shared)
    try:
        for room in shared.rooms:
            observer.call(Request("get", "GET", f"/api/v1/rooms/{room}", room=room))
            observer.call(Request("members", "GET", f"/api/v1/rooms/{room}/members?limit=1000", room=room))
        observer.call(Request("list", "GET", "/api/v1/rooms?pageSize=200&sort=id", asked={"states": []}))
        observer.call(Request("token.list", "GET", "/api/v1/tokens"))
    finally:
        observer.drop()
