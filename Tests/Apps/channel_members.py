"""Members of a channel who change their places in the queue until the server is gone: python3 channel_members.py URL…. Prints each value that
was sent, and each that was acknowledged."""
import asyncio
import json
import sys

import websockets


async def member(url):
    user = None
    async with websockets.connect(url) as socket:
        number = 0
        async for text in socket:
            frame = json.loads(text)
            if frame["type"] == "hello":
                user = frame["you"]["id"]
            elif frame["type"] == "ack":
                print("acknowledged", user, number, flush=True)
            else:
                continue
            number += 1
            print("sent", user, number, flush=True)
            await socket.send(json.dumps({"type": "queue.offer", "ref": number, "value": str(number)}))
            # Below the pace that a connection may have.
            await asyncio.sleep(0.03)


async def main():
    await asyncio.gather(*(member(url) for url in sys.argv[1:]), return_exceptions=True)


asyncio.run(main())
