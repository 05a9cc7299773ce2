"""The first frames of a channel and of a mesh room over TLS: python3 sockets_tls.py CHANNEL-URL MESH-URL CERTIFICATE."""
import asyncio
import json
import ssl
import sys

import websockets

channel, mesh, certificate = sys.argv[1:]
CONTEXT = ssl.create_default_context(cafile=certificate)


async def main():
    async with websockets.connect(channel, ssl=CONTEXT, proxy=None) as socket:
        print(json.loads(await socket.recv())["type"])
    async with websockets.connect(mesh, ssl=CONTEXT, proxy=None) as socket:
        await socket.send(json.dumps({"eventName": "__join", "data": {"room": "tls"}}))
        print(json.loads(await socket.recv())["eventName"])


asyncio.run(main())
