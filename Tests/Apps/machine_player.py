"""A player that sends commands faster than it may: python3 machine_player.py URL PER_SECOND SECONDS. Prints what became of them."""
import asyncio
import json
import sys
import time

import websockets


async def main(url, rate, seconds):
    taken, refused, late = [], 0, 0.0
    async with websockets.connect(url) as socket:
        async def hears(wanted):
            while True:
                frame = json.loads(await asyncio.wait_for(socket.recv(), 60))
                if wanted(frame):
                    return frame

        await hears(lambda frame: frame["type"] == "hello")
        await socket.send(json.dumps({"type": "queue.offer", "ref": 1, "value": "{}"}))
        invitation = await hears(lambda frame: frame["type"] == "command" and frame["content"]["command"] == 11)
        await socket.send(json.dumps({"type": "command", "ref": 2, "content": {"command": 12, "data": invitation["content"]["data"]}}))
        await hears(lambda frame: frame["type"] == "turn" and frame["phase"] == "playing")

        async def ticks():
            nonlocal late
            while True:
                due = time.monotonic() + 0.02
                await asyncio.sleep(0.02)
                late = max(late, time.monotonic() - due)

        async def answers():
            nonlocal refused
            while len(taken) + refused < rate * seconds:
                frame = json.loads(await asyncio.wait_for(socket.recv(), 60))
                if frame["type"] == "command" and frame["content"]["command"] == 5:
                    taken.append(time.monotonic())
                elif frame["type"] == "error" and frame["code"] == "407":
                    refused += 1

        listening, ticking = asyncio.create_task(answers()), asyncio.create_task(ticks())
        begin = time.monotonic()
        for number in range(rate * seconds):
            await asyncio.sleep(max(0, begin + number / rate - time.monotonic()))
            await socket.send(json.dumps({"type": "command", "ref": 10 + number, "content": {"command": 1, "data": "left", "serial": number}}))
        await listening
        ticking.cancel()
    # Answers are late by different times: nine tenths of a second are judged.
    most = max(sum(start <= other < start + 0.9 for other in taken) for start in taken)
    print(json.dumps({"sent": rate * seconds, "taken": len(taken), "refused": refused, "most": most, "late": late}))


asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
