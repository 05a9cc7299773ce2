"""A claw machine without a claw: python3 machine.py --http http://127.0.0.1:8080 --room NUMBER [--win 0.5]. Needs the package websockets.

It connects to the channel of its room as the machine, says what it would do with each command of the player, and tells the result two
seconds after the claw was dropped. The server calls the players, watches the time, and lets only the one whose turn it is move the claw.
"""
import argparse
import asyncio
import json
import random
import urllib.request

try:
    import websockets
except ModuleNotFoundError:
    raise SystemExit("machine: the package websockets is missing; python3 -m venv ~/.machine && ~/.machine/bin/pip install websockets, then ~/.machine/bin/python") from None

WAYS = {"up": "back", "down": "front"}
PHASES = {"idle": "the machine is free", "offered": "{} is called", "playing": "{} plays", "settling": "waiting for the claw"}
# Closed for good: another machine has connected in this place, this one was removed, was not let in, or its room has ended.
FINAL = {4001: "another machine has taken this place", 4002: "removed from the room", 4003: "not let in", 4004: "the room has ended"}


def say(text):
    print(text, flush=True)


def token(http, room):
    """The machine's own token, from the server's API for hosts."""
    with urllib.request.urlopen(f"{http}/dollsCatcher/host/query", f"roomId={room}".encode(), timeout=10) as answer:
        found = json.load(answer)
    if found["code"] != 200:
        raise SystemExit(f"machine: the server refused: {found['msg']} ({found['code']})")
    say(f"this is {found['data']['name']}")
    return found["data"]["creatorToken"]


class Machine:
    """One connection of it."""

    def __init__(self, socket, chance):
        self.socket, self.chance, self.names, self.dropping = socket, chance, {}, None

    async def run(self):
        async for text in self.socket:
            frame = json.loads(text)
            if frame["type"] == "hello":
                self.names = {member["id"]: member["name"] for member in frame["members"]}
                say(f"connected; in the queue: {len(frame['state']['queue'])}")
                if frame["state"]["machine"]["turn"]["phase"] == "settling":  # The connection was lost between the drop and its result.
                    self.drop(frame["state"]["machine"]["turn"]["player"])
            elif frame["type"] == "presence":
                self.names[frame["member"]["id"]] = frame["member"]["name"]
            elif frame["type"] == "turn":
                say(PHASES.get(frame["phase"], frame["phase"]).format(self.names.get(frame["player"], "")))
                if frame["phase"] == "idle":  # A result would be for nobody.
                    self.stop()
            elif frame["type"] == "command":
                await self.command(frame["from"], frame["content"])
            elif frame["type"] == "error":
                say(f"the server refused: {frame['message']}")

    async def command(self, player, content):
        # Clients of the vendor's SDK send the object's text.
        command = json.loads(content) if isinstance(content, str) else content
        number, data = command["command"], command.get("data")
        if number == 1:
            say("the claw stops" if data == "stop" else f"the claw goes {WAYS.get(data, data)}")
        elif number == 2:
            say("the claw drops")
            self.drop(player)
        elif number == 3:
            say(f"{self.names.get(player, player)} looks through camera {data}")
        done = {key: command[key] for key in ("command", "data") if key in command}
        await self.send(player, {**command, "command": 5, "data": done, "code": 200})

    def drop(self, player):
        self.dropping = self.dropping or asyncio.ensure_future(self.result(player))

    async def result(self, player):
        await asyncio.sleep(2)
        has_won = random.random() < self.chance
        self.dropping = None
        say(f"{self.names.get(player, player)} has {'won' if has_won else 'lost'}")
        await self.send(player, {"command": 4, "data": "true" if has_won else "false"})

    def stop(self):
        if self.dropping:
            self.dropping.cancel()
        self.dropping = None

    async def send(self, player, content):
        await self.socket.send(json.dumps({"type": "command", "to": player, "content": content}))


async def main(http, room, win):
    address, wait = None, 0.5
    while True:
        code = None
        try:
            address = address or f"{http.replace('http', 'ws', 1)}/channel?token={token(http, room)}"
            async with websockets.connect(address) as socket:
                wait, machine = 0.5, Machine(socket, win)
                try:
                    await machine.run()
                finally:
                    machine.stop()
                code = socket.close_code
        except (OSError, websockets.WebSocketException) as error:
            code = getattr(getattr(error, "rcvd", None), "code", None)
            say(f"no connection: {error}")
        if code in FINAL:
            raise SystemExit(f"machine: {FINAL[code]}")
        say(f"trying again in {wait:.1f} s")
        await asyncio.sleep(wait)
        wait = min(2 * wait, 15)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="machine", description="A claw machine without a claw.")
    parser.add_argument("--http", default="http://127.0.0.1:8080", help="the server")
    parser.add_argument("--room", required=True, help="the machine's number, from host/create")
    parser.add_argument("--win", type=float, default=0.5, help="the chance to win, 0 to 1")
    asyncio.run(main(**vars(parser.parse_args())))
