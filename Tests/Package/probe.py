"""Connects to both ports every 10 ms, until its standard input ends; then says as JSON what became of it. Alone, for a network namespace of its own.

python3 probe.py RTMP_PORT HTTP_PORT
"""
import asyncio
import json
import sys
import time

EVERY = 0.01
PATIENCE = 60


class Tally:
    def __init__(self):
        self.asked = 0
        self.good = 0
        # Nobody listened; accepted and cut before an answer; no answer in time; another status than 200.
        self.refused, self.cut, self.silent, self.other = 0, 0, 0, 0
        self.longest = 0.0
        self.first_refused, self.last_refused = None, None

    async def ask(self, act):
        self.asked += 1
        begin = time.monotonic()
        try:
            if await asyncio.wait_for(act(), PATIENCE):
                self.good += 1
                self.longest = max(self.longest, time.monotonic() - begin)
            else:
                self.other += 1
        except ConnectionRefusedError:
            self.refused += 1
            self.first_refused = self.first_refused or begin
            self.last_refused = begin
        except asyncio.TimeoutError:
            self.silent += 1
        except (OSError, asyncio.IncompleteReadError):
            self.cut += 1

    def told(self):
        away = self.last_refused - self.first_refused + EVERY if self.refused else 0
        names = ["asked", "good", "refused", "cut", "silent", "other", "longest"]
        return {**{name: getattr(self, name) for name in names}, "away": away}


async def connect(port):
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.close()
    return True


async def health(port):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        return (await reader.readuntil(b"\r\n")).split()[1] == b"200"
    finally:
        writer.close()


async def main(rtmp, http):
    tallies = {"rtmp": Tally(), "http": Tally()}
    over = asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    asking = set()
    print("probing", flush=True)
    while not over.done():
        for name, act in [("rtmp", lambda: connect(rtmp)), ("http", lambda: health(http))]:
            task = asyncio.create_task(tallies[name].ask(act))
            asking.add(task)
            task.add_done_callback(asking.discard)
        await asyncio.sleep(EVERY)
    await asyncio.gather(*asking)
    print(json.dumps({name: tally.told() for name, tally in tallies.items()}))


asyncio.run(main(int(sys.argv[1]), int(sys.argv[2])))
