"""Servers that are killed while a class changes: cases as in cases.py."""
import copy
import http.client
import json
import os
import random
import signal
import threading
import time
import urllib.error
import urllib.request

from registry import case


class Gone(Exception):
    """The server does not answer any more."""


class Member:
    """Calls the class's API as one member."""

    def __init__(self, server, name):
        self.server, self.authorization = server, ""
        joined = self.call("/room/join", userName=name, audience=False)
        self.authorization, self.id = joined["authorization"], joined["userInfo"]["userId"]

    def call(self, path, **fields):
        body = json.dumps({"roomId": "kill", **fields}).encode()
        return self.ask(urllib.request.Request(f"http://{self.server.http}/classroom/api/v1{path}", body, {"Authorization": self.authorization}))

    def state(self):
        """Members by id, and whiteboards by id with their pages."""
        url = f"http://{self.server.http}/classroom/api/v1/room"
        headers = {"Authorization": self.authorization}
        members = self.ask(urllib.request.Request(f"{url}/members?roomId=kill", headers=headers))
        boards = self.ask(urllib.request.Request(f"{url}/whiteboard/list?roomId=kill", headers=headers))
        return {"members": {row["userId"]: row for row in members}, "boards": {row["whiteboardId"]: row["curPg"] for row in boards}}

    @staticmethod
    def ask(request):
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                found = json.loads(answer.read())
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise Gone from error
        assert found["errCode"] == 0, f"{request.full_url} {request.data}: {found}"
        return found["data"]["result"]


def changes(members, state, dice):
    """One change at random: the call, and what the state is after it. A new whiteboard's id is not known before."""
    after, member = copy.deepcopy(state), dice.choice(members)
    kind = dice.choice(["camera", "microphone", "create", "turn", "turn"])
    if kind in ("camera", "microphone"):
        on = not state["members"][member.id][kind]
        after["members"][member.id][kind] = on
        return (lambda: member.call("/room/device/sync", **{f"{kind}On": on})), after
    if kind == "create" or not state["boards"]:
        after["boards"][None] = 0
        return (lambda: members[0].call("/room/whiteboard/create")), after
    board, page = dice.choice(sorted(state["boards"])), dice.randrange(20)
    after["boards"][board] = page
    return (lambda: members[0].call("/room/whiteboard/turn-page", whiteboardId=board, page=page)), after


def fits(found, expected):
    """Whether the state is this one; None stands for a whiteboard whose answer never came."""
    known = {board: page for board, page in expected["boards"].items() if board}
    new = set(found["boards"]) - set(known)
    return (
        found["members"] == expected["members"] and {board: found["boards"].get(board) for board in known} == known
        and len(new) == len(expected["boards"]) - len(known))


@case
def class_kill(server):
    """Changes that a class acknowledged are there after kill -9; the call under way happened whole or not at all."""
    seed = int(os.environ.get("EARSHOT_SEED") or random.randrange(1 << 30))
    dice = random.Random(seed)
    members = [Member(server, name) for name in ("Ann", "Bob", "Cat")]
    state, done = members[0].state(), 0
    for round_number in range(4):
        threading.Timer(0.3 + dice.random(), server.process.send_signal, [signal.SIGKILL]).start()
        underway = state
        try:
            while len(state["boards"]) < 45:
                act, underway = changes(members, state, dice)
                made = act()
                if None in underway["boards"]:
                    underway["boards"][made] = underway["boards"].pop(None)
                state, done = underway, done + 1
            time.sleep(2)
        except Gone:
            pass
        server.process.wait(20)
        server.start()
        found = members[0].state()
        assert fits(found, state) or fits(found, underway), f"seed {seed}, round {round_number}: {found} is neither {state} nor {underway}"
        state = found
    assert done > 20, f"{done} changes in all"
    events = server.api("rooms/class-kill/events?limit=1000")["list"]
    assert [event["number"] for event in events] == list(range(events[0]["number"], events[0]["number"] + len(events))), "no event is missing"
