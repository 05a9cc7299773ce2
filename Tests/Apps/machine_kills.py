"""A machine and its players, who do what comes to mind until the server is gone: python3 machine_kills.py SEED DEVICE_URL PLAYER_URL…. Prints, one JSON
a line, what the machine is told of the queue, and what players have an answer to."""
import asyncio
import json
import random
import sys

import websockets


def tell(*what):
    print(json.dumps(what), flush=True)


async def device(url, dice):
    async with websockets.connect(url, ping_interval=None) as socket:
        await socket.send('{"type":"ping"}')
        async for text in socket:
            frame = json.loads(text)
            if frame["type"] == "queue":
                tell("told", frame["action"], frame["key"], frame["value"])
            if frame["type"] == "command" and frame["content"]["command"] == 2 and dice.random() < 0.8:
                await asyncio.sleep(dice.random() * 0.3)
                await socket.send(json.dumps({"type": "command", "content": {"command": 4, "data": dice.choice(["true", "false"])}}))


async def player(url, dice, number):
    async with websockets.connect(url, ping_interval=None) as socket:
        asked, turn, you = {}, {}, None

        async def hears():
            nonlocal you
            async for text in socket:
                frame = json.loads(text)
                if frame["type"] == "hello":
                    you = frame["you"]["id"]
                elif frame["type"] == "ack" and frame["ref"] in asked:
                    tell("acknowledged", *asked.pop(frame["ref"]))
                elif frame["type"] == "turn":
                    turn.update(frame)
                elif frame["type"] == "command" and frame["content"]["command"] == 11:
                    await asyncio.sleep(dice.random() * 0.3)
                    await say(type="command", content={"command": dice.choice([12, 12, 12, 13]), "data": frame["content"]["data"]})

        async def say(**frame):
            await socket.send(json.dumps(frame))

        async def acts():
            ref = 0
            while True:
                await asyncio.sleep(0.05 + dice.random() * 0.15)
                if not you:
                    continue
                ref += 1
                value = f"{number}.{ref}"
                if turn.get("player") == you and turn.get("phase") == "playing":
                    await say(type="command", content={"command": 1, "data": "left"})
                    if dice.random() < 0.2:
                        await say(type="command", content={"command": 2})
                elif dice.random() < 0.85:
                    asked[ref] = ("OFFER", you, value)
                    await say(type="queue.offer", ref=ref, value=value)
                else:
                    asked[ref] = ("POLL", you, "")
                    await say(type="queue.poll", ref=ref)

        await asyncio.gather(hears(), acts())


async def main():
    dice = random.Random(int(sys.argv[1]))
    people = [device(sys.argv[2], dice)] + [player(url, dice, f"{sys.argv[1]}.{number}") for number, url in enumerate(sys.argv[3:])]
    for end in await asyncio.gather(*people, return_exceptions=True):
        # The server was killed.
        if not isinstance(end, (websockets.ConnectionClosed, OSError, type(None))):
            raise end


asyncio.run(main())
