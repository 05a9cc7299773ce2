"""A claw machine without a claw: python3 machine.py --http http://127.0.0.1:8080 --room NUMBER [--win 0.5]. Needs the package websockets.

It connects to the channel of its room as the machine, says what it would do with each command of the player, and tells the result two
seconds after the claw was dropped. The server calls the players, watches the time, and lets only the one whose turn it is move the claw.
"""
import argparse
import asyncio
import json
import random
import urllib.parse
import urllib.request

import websockets

WORDS = {"up": "back", "down": "front", "left": "left", "right": "right"}
# Closed for good: another machine has connected in this place, this one was removed, was not let in, or its room has ended.
FINAL = {4001: "another machine has taken this place", 4002: "removed from the room", 4003: "not let in", 4004: "the room has ended"}


def say(text):
    print(text, flush=True)


def token(http, room):
    """The machine's own token, from the server's API for hosts."""
    form = urllib.parse.urlencode({"roomId": room}).encode()
    with urllib.request.urlopen(f"{http}/dollsCatcher/host/query", form, timeout=10) as answer:
        found = json.load(answer)
    if found["code"] != 200:
        raise SystemExit(f"machine: the server refused: {found['msg']} ({found['code']})")
    say(f"this is {found['data']['name']}, {'open' if found['data']['roomStatus'] else 'closed'}")
    return found["data"]["creatorToken"]


class Machine:
    def __init__(self, chance):
        self.chance, self.names, self.dropping = chance, {}, None

    async def run(self, socket):
        async for text in socket:
            frame = json.loads(text)
            kind = frame["type"]
            if kind == "hello":
                self.names = {member["id"]: member["name"] for member in frame["members"]}
                say(f"connected; in the queue: {len(frame['state']['queue'])}")
                turn = frame["state"]["machine"]["turn"]
                if turn["phase"] == "settling":
                    # The connection was lost between drop and result.
                    self.drop(socket, turn["player"])
            elif kind == "presence":
                self.names[frame["member"]["id"]] = frame["member"]["name"]
            elif kind == "turn":
                self.turn(frame)
            elif kind == "command":
                await self.command(socket, frame["from"], frame["content"])
            elif kind == "error":
                say(f"the server refused: {frame['message']}")

    def name(self, player):
        return self.names.get(player, player)

    def turn(self, frame):
        phase, player = frame["phase"], self.name(frame["player"])
        if phase == "idle":
            # Its result would be for nobody.
            if self.dropping:
                self.dropping.cancel()
            self.dropping = None
        say({"idle": "the machine is free", "offered": f"{player} is called", "playing": f"{player} plays", "settling": "waiting for the claw"}.get(phase, phase))

    async def command(self, socket, player, content):
        # Clients of the vendor's send the text of the object.
        command = json.loads(content) if isinstance(content, str) else content
        number, data = command.get("command"), command.get("data")
        if number == 1:
            say("the claw stops" if data == "stop" else f"the claw goes {WORDS.get(data, data)}")
        elif number == 2:
            say("the claw drops")
            self.drop(socket, player)
        elif number == 3:
            say(f"{self.name(player)} looks through camera {data}")
        else:
            return
        answer = {"command": 5, "data": {key: command[key] for key in ("command", "data") if key in command}, "code": 200}
        if "serial" in command:
            answer["serial"] = command["serial"]
        await self.send(socket, player, answer)

    def drop(self, socket, player):
        if self.dropping is None:
            self.dropping = asyncio.ensure_future(self.result(socket, player))

    async def result(self, socket, player):
        await asyncio.sleep(2)
        has_won = random.random() < self.chance
        self.dropping = None
        say(f"{self.name(player)} has {'won' if has_won else 'lost'}")
        await self.send(socket, player, {"command": 4, "data": "true" if has_won else "false"})

    @staticmethod
    async def send(socket, player, content):
        await socket.send(json.dumps({"type": "command", "to": player, "content": content}))


async def main(http, room, chance):
    address = f"{http.replace('http', 'ws', 1)}/channel?{urllib.parse.urlencode({'token': token(http, room)})}"
    wait = 0.5
    while True:
        machine = Machine(chance)
        try:
            async with websockets.connect(address) as socket:
                wait = 0.5
                await machine.run(socket)
                if socket.close_code in FINAL:
                    raise SystemExit(f"machine: {FINAL[socket.close_code]}")
        except (OSError, websockets.WebSocketException) as error:
            if getattr(getattr(error, "rcvd", None), "code", 0) in FINAL:
                raise SystemExit(f"machine: {FINAL[error.rcvd.code]}") from None
            say(f"no connection: {error}")
        finally:
            if machine.dropping:
                machine.dropping.cancel()
        say(f"trying again in {wait:.1f} s")
        await asyncio.sleep(wait)
        wait = min(2 * wait, 15)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="machine", description="A claw machine without a claw.")
    parser.add_argument("--http", default="http://127.0.0.1:8080", help="the server")
    parser.add_argument("--room", required=True, help="the machine's number, from host/create")
    parser.add_argument("--win", type=float, default=0.5, help="the chance to win, 0 to 1")
    options = parser.parse_args()
    try:
        asyncio.run(main(options.http.rstrip("/"), options.room, options.win))
    except KeyboardInterrupt:
        pass
