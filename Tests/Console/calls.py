"""Calls of the API, many at a time or timed one by one."""
import http.client
import json
import threading
import time


class Link:
    def __init__(self, server):
        self.link = http.client.HTTPConnection(server.http, timeout=60)
        self.headers = {"Authorization": f"Bearer {server.token}", "Content-Type": "application/json"}

    def call(self, method, path, body=None):
        self.link.request(method, f"/api/v1/{path}", None if body is None else json.dumps(body), self.headers)
        answer = self.link.getresponse()
        text = answer.read()
        if answer.status >= 300:
            raise RuntimeError(f"{method} {path}: {answer.status} {text[:200]}")
        return text


def calls(server, jobs, threads=8, rate=None):
    """Makes (method, path, body) calls over a few connections, at most `rate` a second; every one must succeed. Those of one room keep their
    order. Returns how many there were."""
    jobs, failures, lock, rooms = enumerate(jobs), [], threading.Lock(), {}
    begun, done = time.monotonic(), [0]

    def work():
        link = Link(server)
        try:
            while not failures:
                with lock:
                    number, job = next(jobs, (0, None))
                    if job is None:
                        return
                    # The one before on the same room must have been answered.
                    key = job[2]["roomId"] if job[0] == "POST" else job[1].split("/")[-1]
                    before, mine = rooms.get(key), threading.Event()
                    rooms[key] = mine
                if rate:
                    time.sleep(max(0, begun + number / rate - time.monotonic()))
                if before:
                    before.wait()
                try:
                    link.call(*job)
                finally:
                    mine.set()
                done[0] += 1
        except Exception as error:  # noqa: BLE001: reported by the caller's thread.
            failures.append(error)

    workers = [threading.Thread(target=work) for _ in range(threads)]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    if failures:
        raise failures[0]
    return done[0]


def timed(server, path, links={}):
    """Milliseconds of a GET over a connection that is kept."""
    link = links.setdefault(server.http, None) or Link(server)
    links[server.http] = link
    start = time.monotonic()
    link.call("GET", path)
    return (time.monotonic() - start) * 1000
