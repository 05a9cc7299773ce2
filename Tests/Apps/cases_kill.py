"""Servers that are killed while a class or a machine changes: cases as in cases.py. EARSHOT_KILLS: how often (3 without it); EARSHOT_SEED: the dice."""
import copy
import http.client
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.request

import tools
from machine_lab import create, data
from registry import case
from server import wait_for

ROLES = {1: "assistant", 2: "teacher", 3: "student", 4: "audience"}
CLASS = "class-kill"


def rounds():
    return int(os.environ.get("EARSHOT_KILLS", "3"))


def dice():
    """The dice, and their seed for what is told of a failure."""
    seed = int(os.environ.get("EARSHOT_SEED") or random.randrange(1 << 30))
    return random.Random(seed), seed


def numbered(server, room):
    """A room's events; none is missing."""
    events = []
    while not events or len(events) % 1000 == 0:
        after = f"&after={events[-1]['id']}" if events else ""
        page = server.api(f"rooms/{room}/events?limit=1000{after}")["list"]
        events += page
        if not page:
            break
    assert [event["number"] for event in events] == list(range(events[0]["number"], events[0]["number"] + len(events))), "no event is missing"
    return events


class Gone(Exception):
    """The server does not answer any more."""


class Member:
    """Calls the class's API as one member."""

    def __init__(self, server, name, audience=False):
        self.server, self.name, self.audience, self.authorization = server, name, audience, ""
        joined = self.join()
        self.authorization, self.id = joined["authorization"], joined["userInfo"]["userId"]

    def join(self):
        return self.call("/room/join", userName=self.name, audience=self.audience)

    def call(self, path, **fields):
        body = json.dumps({"roomId": "kill", **fields}).encode()
        return self.ask(urllib.request.Request(f"http://{self.server.http}/classroom/api/v1{path}", body, {"Authorization": self.authorization}))

    def reads(self, path):
        url = f"http://{self.server.http}/classroom/api/v1/room{path}?roomId=kill"
        return self.ask(urllib.request.Request(url, headers={"Authorization": self.authorization}))

    @staticmethod
    def ask(request):
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                found = json.loads(answer.read())
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise Gone from error
        assert found["errCode"] == 0, f"{request.full_url} {request.data}: {found}"
        return found["data"]["result"]


def stored(server):
    """The class as its row has it, with names for people's ids and for whiteboards' addresses: two classes that went the same way look the same."""
    with sqlite3.connect(f"file:{server.folder}/data/earshot.db?mode=ro", uri=True, timeout=20) as store:
        row = store.execute("SELECT state FROM gatherings WHERE id = ?", (CLASS,)).fetchone()
    store.close()
    state = json.loads(row[0])
    names = {member["id"]: member["name"] for member in state["gathering"]["members"]}
    boards = {board["id"]: board["name"] for board in state["boards"]}
    devices = {device["id"]: device for device in state["devices"]}
    display = state["display"]
    return {
        "members": {
            member["name"]: {"role": member["role"], "camera": devices[member["id"]]["camera"], "microphone": devices[member["id"]]["microphone"]}
            for member in state["gathering"]["members"]},
        "boards": {boards[board["id"]]: board["page"] for board in state["boards"]}, "made": state["boardsMade"],
        "display": display and [display["type"], names.get(display["userId"], ""), boards.get(display["uri"], display["uri"])],
        "tickets": sorted([ticket["kind"], names[ticket["from"]], names[ticket["to"]], (ticket["payload"] or {}).get("role", 0)]
                          for ticket in state["gathering"]["tickets"]),
    }, {"ids": {name: key for key, name in names.items()}, "boards": {name: key for key, name in boards.items()},
        "display": display and "display://type={type}?userId={userId}?uri={uri}".format(**display),
        "tickets": {(ticket["kind"], names[ticket["from"]], names[ticket["to"]]): ticket["id"] for ticket in state["gathering"]["tickets"]}}


class Lesson:
    """What a class is by its rules, and changes of it at random. `state`: as `stored` has it."""

    SEATS = 7

    def __init__(self, server, chance):
        self.server, self.chance, self.joins = server, chance, 0
        self.people = {name: Member(server, name) for name in ("Ann", "Bob", "Cat")}
        # Looks on; nobody changes it.
        self.people["Zoe"] = Member(server, "Zoe", True)
        self.state, self.known = stored(server)

    def by_role(self, *roles):
        """Those of these roles whose token is known."""
        return [name for name, row in self.state["members"].items() if row["role"] in roles and name in self.people]

    def shows(self, state, name):
        return state["display"] is not None and state["display"][0] != 2 and state["display"][1] == name

    def leave(self, after, name):
        if self.shows(after, name):
            after["display"] = None
        if after["display"] and after["display"][1] == name:
            after["display"][1] = ""
        after["tickets"] = [ticket for ticket in after["tickets"] if name not in ticket[1:3]]
        del after["members"][name]

    def change(self):
        """A call, and the state after it; None when the dice chose what cannot be now."""
        state, after = self.state, copy.deepcopy(self.state)
        members, assistant = after["members"], self.people[self.by_role("assistant")[0]]
        ids, chance = self.known["ids"], self.chance
        others = [name for name in members if name not in (assistant.name, "Zoe")]
        leaders, students, audience = self.by_role("assistant", "teacher"), self.by_role("student"), [n for n in self.by_role("audience") if n != "Zoe"]
        kind = chance.choice(["sync", "off", "on", "create", "turn", "delete", "display", "display", "join", "join", "leave", "kick", "downgrade", "teacher",
                              "transfer", "apply", "invite", "invite", "answer", "answer", "answer"])
        leader = self.people[chance.choice(leaders)]
        device = chance.choice(["camera", "microphone"])
        if kind == "sync":
            name = chance.choice(self.by_role("assistant", "teacher", "student"))
            members[name][device] = on = not members[name][device]
            return (lambda: self.people[name].call("/room/device/sync", **{f"{device}On": on})), after
        if kind == "off":
            name = chance.choice(list(members))
            if name == "Zoe":
                return None
            members[name][device] = False
            return (lambda: assistant.call("/room/device/control", userId=ids[name], **{f"{device}On": False})), after
        if kind == "on" and others:
            name = chance.choice(others)
            self.open(after, device, assistant.name, name)
            return (lambda: assistant.call("/room/device/control", userId=ids[name], **{f"{device}On": True})), after
        if kind == "create" and len(after["boards"]) < 8:
            after["made"] += 1
            name = f"白板{after['made']}"
            after["boards"][name] = 0
            after["display"] = [2, leader.name, name]
            return (lambda: leader.call("/room/whiteboard/create")), after
        if kind == "turn" and after["boards"]:
            name, page = chance.choice(sorted(after["boards"])), chance.randrange(20)
            after["boards"][name] = page
            return (lambda: leader.call("/room/whiteboard/turn-page", whiteboardId=self.known["boards"][name], page=page)), after
        if kind == "delete" and after["boards"]:
            name = chance.choice(sorted(after["boards"]))
            del after["boards"][name]
            if after["display"] and after["display"][0] == 2 and after["display"][2] == name:
                after["display"] = None
            return (lambda: leader.call("/room/whiteboard/delete", whiteboardId=self.known["boards"][name])), after
        if kind == "display":
            return self.display(after, leader)
        if kind == "join" and len(members) < 10:
            return self.join(after)
        if kind == "leave" and others:
            name = chance.choice([name for name in others if name in self.people] or [None])
            if not name:
                return None
            self.leave(after, name)
            return (lambda: self.people[name].call("/room/leave")), after
        if kind == "kick" and others:
            name = chance.choice(others)
            self.leave(after, name)
            return (lambda: assistant.call("/room/kick", userId=ids[name])), after
        if kind == "downgrade" and others:
            name = chance.choice(others)
            if members[name]["role"] != "audience":
                members[name]["role"] = "audience"
                if self.shows(after, name):
                    after["display"] = None
            return (lambda: assistant.call("/room/downgrade", users=[{"userId": ids[name], "role": 4}])), after
        if kind == "teacher" and students:
            name = chance.choice(students)
            self.teacher(after, name)
            after["display"] = [1, name, ""]
            return (lambda: assistant.call("/room/change-role", userId=ids[name], role=2)), after
        if kind == "transfer":
            name = chance.choice([name for name in others if name in self.people] or [None])
            if not name:
                return None
            if self.shows(after, assistant.name) or self.shows(after, name):
                after["display"] = None
            members[assistant.name]["role"], members[name]["role"] = "student", "assistant"
            after["tickets"] = [ticket for ticket in after["tickets"] if ticket[0] != "speech"]
            return (lambda: assistant.call("/room/transfer", userId=ids[name])), after
        if kind == "apply" and audience:
            name = chance.choice(audience)
            self.open(after, "speech", name, assistant.name)
            return (lambda: self.people[name].call("/room/speech/apply")), after
        if kind == "invite":
            able = [name for name in others if members[name]["role"] in ("student", "audience")]
            if not able:
                return None
            name = chance.choice(able)
            role = 2 if members[name]["role"] == "student" else chance.choice([2, 3])
            self.open(after, "invite", assistant.name, name, role)
            return (lambda: assistant.call("/room/upgrade/invite", userId=ids[name], role=role)), after
        if kind == "answer" and state["tickets"]:
            return self.answer(after, chance.choice(state["tickets"]))
        return None

    def open(self, after, kind, asking, asked, role=0):
        after["tickets"] = sorted([t for t in after["tickets"] if t[:3] != [kind, asking, asked]] + [[kind, asking, asked, role]])

    def teacher(self, after, name):
        for row in after["members"].values():
            if row["role"] == "teacher":
                row["role"] = "student"
        after["members"][name]["role"] = "teacher"

    def display(self, after, leader):
        kind = self.chance.randrange(5)
        names = {row["role"]: name for name, row in after["members"].items()}
        fields = {"type": kind}
        if kind == 4:
            after["display"] = None
        elif kind == 2:
            if not after["boards"]:
                return None
            name = self.chance.choice(sorted(after["boards"]))
            fields["uri"] = self.known["boards"][name]
            after["display"] = [2, "", name]
        elif kind == 3:
            name = self.chance.choice(list(after["members"]))
            fields["userId"] = self.known["ids"][name]
            after["display"] = [3, name, ""]
        else:
            name = names.get("assistant" if kind == 0 else "teacher")
            if not name:
                return None
            after["display"] = [kind, name, ""]
        return (lambda: leader.call("/room/display", **fields)), after

    def join(self, after):
        """Somebody new. Who came while the server was killed has a token that nobody knows."""
        self.joins += 1
        name, looks_on = f"P{self.joins}", self.chance.random() < 0.5
        seated = sum(row["role"] != "audience" for row in after["members"].values())
        role = "audience" if looks_on else "teacher" if seated == 1 else "student"
        after["members"][name] = {"role": role, "camera": True, "microphone": True}
        if role == "teacher":
            after["display"] = [1, name, ""]

        def act():
            self.people[name] = Member(self.server, name, looks_on)

        return act, after

    def answer(self, after, ticket):
        kind, asking, asked, role = ticket
        if asked not in self.people:
            return None
        is_yes, members = self.chance.random() < 0.6, after["members"]
        now = members[asked]["role"]
        path = {"speech": "speech", "invite": "upgrade"}.get(kind, "device")
        may = {"speech": ("assistant",), "upgrade": ("audience", "student"), "device": ("teacher", "student")}[path]
        if now not in may or (is_yes and kind == "speech" and members[asking]["role"] != "audience"):
            return None
        if is_yes and kind == "invite" and not (now == "audience" or role == 2 and now == "student"):
            return None
        after["tickets"] = [other for other in after["tickets"] if other != ticket]
        if is_yes and kind == "speech":
            members[asking]["role"] = "student"
        if is_yes and kind == "invite":
            former = next((name for name, row in members.items() if row["role"] == "teacher"), None)
            if role == 2:
                self.teacher(after, asked)
                if former and self.shows(after, former):
                    after["display"] = None
            else:
                members[asked]["role"] = "student"
        if is_yes and path == "device":
            members[asked][kind] = True
        key = self.known["tickets"][kind, asking, asked]
        return (lambda: self.people[asked].call(f"/room/{path}/{'approve' if is_yes else 'reject'}", ticket=key)), after


# What a class keeps, all of which must have changed before the last kill.
KINDS = {"members", "boards", "display", "tickets"}


@case
def class_kill(server):
    """A class at any moment of which the server may be killed: every call that was answered is there, the one under way whole or not at all."""
    chance, seed = dice()
    lesson = Lesson(server, chance)
    done, kinds = 0, set()
    for number in range(rounds()):
        # At any moment of a change, after enough of them.
        least, underway, timer = done + chance.randrange(10, 40), lesson.state, None
        try:
            while True:
                if not timer and done >= least and (number + 1 < rounds() or kinds >= KINDS):
                    timer = threading.Timer(0.1 * chance.random(), server.process.send_signal, [signal.SIGKILL])
                    timer.start()
                chosen = lesson.change()
                if not chosen:
                    continue
                act, underway = chosen
                act()
                done += 1
                found, lesson.known = stored(server)
                assert found == underway, f"seed {seed}, change {done}: {found} is not {underway}"
                kinds |= {key for key in found if found[key] != lesson.state[key]}
                lesson.state = found
        except Gone:
            pass
        server.process.wait(20)
        server.start()
        found, known = stored(server)
        assert found in (lesson.state, underway), f"seed {seed}, round {number}: {found} is neither {lesson.state} nor {underway}"
        for name in set(lesson.people) - set(found["members"]):
            del lesson.people[name]
        lesson.state, lesson.known = found, known
        # What the class says of itself is what is stored.
        zoe = lesson.people["Zoe"]
        rows = {row["userName"]: {"role": ROLES[row["role"]], "camera": row["camera"], "microphone": row["microphone"]} for row in zoe.reads("/members")}
        assert rows == found["members"], f"seed {seed}, round {number}: {rows} is not {found['members']}"
        assert {row["name"]: row["curPg"] for row in zoe.reads("/whiteboard/list")} == found["boards"]
        again = zoe.join()
        assert again["display"] == (known["display"] or "") and again["userInfo"]["userId"] == zoe.id, f"seed {seed}, round {number}: {again['display']!r} is not {known['display']!r}"
    assert done >= 10 * rounds() and kinds >= KINDS, f"seed {seed}: {done} changes, of {kinds}"
    numbered(server, CLASS)


# Nobody has a connection, and nothing may run out meanwhile.
class_kill.settings = {"EARSHOT_APPS_CLASSROOM_TICKET": "24h", "EARSHOT_APPS_CLASSROOM_OFFLINE": "24h", "EARSHOT_APPS_CLASSROOM_LIFETIME": "24h"}


def machine(server, number):
    """A machine as its row has it, and its events, of the same moment."""
    with sqlite3.connect(f"file:{server.folder}/data/earshot.db?mode=ro", uri=True, timeout=20) as store:
        store.execute("BEGIN")
        state = json.loads(store.execute("SELECT state FROM gatherings WHERE id = ?", (f"m-{number}",)).fetchone()[0])
        rows = store.execute("SELECT number, kind, data FROM events WHERE room_id = ? ORDER BY id", (f"m-{number}",)).fetchall()
    store.close()
    assert [row[0] for row in rows] == list(range(1, len(rows) + 1)), "no event is missing"
    return state, [(kind, json.loads(text)) for _, kind, text in rows]


def retold(events):
    """Queue, people and turn as the events tell them; each event must be possible where it stands."""
    queue, people, turn, ended = {}, set(), None, set()
    for kind, event in events:
        if kind == "queue.changed":
            if event["action"] == "OFFER":
                queue[event["key"]] = event["value"]
            else:
                assert queue.pop(event["key"], None) is not None, f"{event} of who is not in the queue"
        elif kind == "member.join":
            people.add(event["userId"])
        elif kind in ("member.leave", "member.kick"):
            people.discard(event["userId"])
        elif kind == "turn.offered":
            assert turn is None and next(iter(queue)) == event["player"], f"{event} while {turn}; queue {list(queue)}"
            turn = ["offered", event["player"], event["uuid"]]
        elif kind in ("turn.accepted", "game.started", "game.dropped", "game.result", "game.ended", "turn.declined", "turn.expired"):
            assert turn and turn[1:] == [event["player"], event["uuid"]], f"{kind} {event} while {turn}"
            may = {"turn.accepted": ["offered"], "game.started": ["playing"], "game.dropped": ["playing"], "game.result": ["settling"],
                   "turn.declined": ["offered"], "turn.expired": ["offered"], "game.ended": ["offered", "playing", "settling"]}[kind]
            assert turn[0] in may, f"{kind} while {turn}"
            turn[0] = {"turn.accepted": "playing", "game.dropped": "settling"}.get(kind, turn[0])
            if kind in ("game.ended", "turn.declined", "turn.expired"):
                assert event["uuid"] not in ended, f"{event['uuid']} ends twice"
                ended.add(event["uuid"])
                turn = None
    return list(queue.items()), people, turn, len(ended)


@case
def machine_kills(server):
    """A machine at any moment of whose games the server may be killed: queue, members and turn are those of its events, which have all that was told."""
    chance, seed = dice()
    folder = tools.packages("websockets-15.0.1", "websockets==15.0.1")
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "machine_kills.py")
    known = create(server)
    number = known["roomId"]
    urls = [f"ws://{server.http}/channel?token={known['creatorToken']}"]
    urls += [f"ws://{server.http}/channel?token={data(server, 'tourist')['imToken']}&room=m-{number}" for _ in range(3)]
    games = 0
    for turn in range(rounds()):
        here = f"seed {seed}, round {turn}"
        players = subprocess.Popen(
            [sys.executable, script, str(chance.randrange(1 << 30)), *urls], env={**os.environ, "PYTHONPATH": folder, "NO_PROXY": "*"},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        # They play by now.
        first = players.stdout.readline()
        threading.Timer(3 + 4 * chance.random(), server.process.send_signal, [signal.SIGKILL]).start()
        out, errors = players.communicate(timeout=60)
        assert first and players.returncode == 0, f"{here}: {errors[-1500:]}"
        server.process.wait(20)
        state, events = machine(server, number)
        queue, people, running, games = retold(events)
        assert [(entry["key"], entry["value"]) for entry in state["gathering"]["queue"]] == queue, f"{here}: {state['gathering']['queue']} is not {queue}"
        assert {member["id"] for member in state["gathering"]["members"]} == people, f"{here}: {state['gathering']['members']} are not {people}"
        assert (state["turn"] and [state["turn"]["phase"], state["turn"]["player"], state["turn"]["uuid"]]) == running, f"{here}: {state['turn']}, {running}"
        changes = [(event["action"], event["key"], event["value"]) for kind, event in events if kind == "queue.changed"]
        told = [json.loads(line) for line in (first + out).splitlines() if line.endswith("]")]
        heard = [tuple(line[1:]) for line in told if line[0] == "told"]
        assert heard and any(changes[at:at + len(heard)] == heard for at in range(len(changes))), f"{here}: {heard} was told; {changes[-len(heard) - 5:]} is stored"
        for what, *change in (line for line in told if line[0] == "acknowledged"):
            # A player leaves the queue with the value that it came with.
            are = [stored for stored in changes if stored[:2] == tuple(change[:2])]
            assert are if change[0] == "POLL" else tuple(change) in are, f"{here}: {what} {change} is not stored"
        server.start()
        # The queue is still there; a game is over, for this reason and once.
        api = server.api(f"gatherings/m-{number}")
        assert [(entry["key"], entry["value"]) for entry in api["queue"]] == queue or running, f"{here}: {api['queue']} is not {queue}"
        if running:
            wait_for("the game's end", lambda: any(
                event["kind"] == "game.ended" and event["data"]["uuid"] == running[2] and event["data"]["endReason"] == "serverRestart"
                for event in numbered(server, f"m-{number}")))
    assert games > rounds() // 2, f"seed {seed}: {games} games"


machine_kills.settings = {"EARSHOT_APPS_MACHINE_OFFERED": "1s", "EARSHOT_APPS_MACHINE_PLAYING": "1s", "EARSHOT_APPS_MACHINE_SETTLING": "1s"}
