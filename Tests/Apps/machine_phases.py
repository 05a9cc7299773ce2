"""A device and two players of a claw machine, phase by phase: python3 machine_phases.py DEVICE_URL PLAYER_URL PLAYER_URL PHASE. Prints "there" when
the first player's turn is in the phase (offered, playing, settling), then waits to be told over its input: "vanish" (the device goes and comes back after
its time), "gone" (the server is killed and back). Then the second player is called, plays and gets its result; prints "done"."""
import asyncio
import json
import sys

import websockets


class Seat:
    def __init__(self, url):
        self.url, self.frames, self.socket, self.came = url, [], None, asyncio.Event()

    async def connect(self):
        """The server may still be on its way back."""
        while True:
            try:
                self.socket = await websockets.connect(self.url, ping_interval=None, open_timeout=10)
                break
            except (OSError, websockets.WebSocketException):
                await asyncio.sleep(0.2)
        asyncio.get_running_loop().create_task(self.read(self.socket))
        await self.sees(lambda frame: frame["type"] == "hello")

    async def read(self, socket):
        try:
            async for text in socket:
                self.frames.append(json.loads(text))
                self.came.set()
        except websockets.WebSocketException:
            pass

    async def sees(self, wanted):
        """Waits for a frame that is wanted; it and those before are gone then."""
        while True:
            for index, frame in enumerate(self.frames):
                if wanted(frame):
                    del self.frames[:index + 1]
                    return frame
            self.came.clear()
            await asyncio.wait_for(self.came.wait(), 60)

    async def hears(self, number):
        """The data of a command."""
        return (await self.sees(lambda frame: frame["type"] == "command" and frame["content"]["command"] == number))["content"].get("data")

    async def say(self, **frame):
        await self.socket.send(json.dumps(frame))

    async def command(self, number, data=None):
        await self.say(type="command", content={"command": number, **({} if data is None else {"data": data})})


async def main(device_url, first_url, second_url, phase):
    device, first, second = Seat(device_url), Seat(first_url), Seat(second_url)
    for seat in (device, first, second):
        await seat.connect()
    for seat in (first, second):
        await seat.say(type="queue.offer", ref=1, value="{}")
        await seat.sees(lambda frame: frame["type"] == "ack" and frame["ref"] == 1)
    turn = await first.hears(11)
    if phase != "offered":
        await first.command(12, turn)
        await device.sees(lambda frame: frame["type"] == "turn" and frame["phase"] == "playing")
    if phase == "settling":
        await first.command(2)
        await device.hears(2)
    print("there", flush=True)
    what = (await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)).strip()
    if what == "vanish":
        await device.socket.close()
        # The turn is over for want of a machine; then that is back.
        await second.sees(lambda frame: frame["type"] == "turn" and frame["phase"] == "idle")
        await device.connect()
    else:
        for seat in (device, first, second):
            await seat.connect()
    if phase == "offered":
        # Not the player's fault: the place is kept, and it is called again.
        await first.command(13, await first.hears(11))
    await second.command(12, await second.hears(11))
    await second.sees(lambda frame: frame["type"] == "turn" and frame["phase"] == "playing")
    await second.command(2)
    await device.hears(2)
    await device.command(4, "true")
    assert await second.hears(4) == "true"
    print("done", flush=True)


asyncio.run(main(*sys.argv[1:]))
