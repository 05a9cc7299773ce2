"""The claw machine's cases: its page in Chromium, its script for other pages, its HTTP API."""
import contextlib
import json
import math
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import urllib.request

import tools
from browser import Browser
from machine_lab import Camera, Claw, Player, call, create, data, state
from registry import case
from server import wait_for

RED, BLUE = (254, 0, 0), (0, 0, 254)


@case
def machine_page(server):
    """Two players at the page, two cameras and the scripted machine: one wins, the next one loses."""
    machine = create(server)
    number = machine["roomId"]
    with Camera(server, machine["pushUrl1"], "red"), Camera(server, machine["pushUrl2"], "blue"), Browser(server.folder) as browser:
        with Claw(server, number, 1) as claw:
            page = browser.page(f"http://{server.http}/demo/machine")
            page.wait("document.querySelector('#machines a')?.textContent.includes('Panda')", "the machine in the list")
            page.wait("document.querySelector('#machines a').textContent.includes('Live')", "its state")
            one, two = Player(browser, server, number), Player(browser, server, number, width=390, height=844, is_phone=True)
            assert one.accid != two.accid
            one.sees_colour(RED)
            one.press("#camera")
            one.sees_colour(BLUE)
            one.press("#camera")
            one.sees_colour(RED)
            one.keep("machine-room")
            one.press("#queue")
            two.sees(one.name, "#entries")
            two.press("#queue")
            two.sees("You are number 2 of 2", "#place")
            one.is_invited()
            one.keep("machine-invited")
            two.sees("is called to play")
            one.press("#accept")
            one.sees("You are playing")
            two.sees("is playing")
            one.key("ArrowLeft", True)
            claw.says("the claw goes left")
            one.key("ArrowLeft", False)
            claw.says("the claw stops")
            one.mouse("[data-move=up]", "mousePressed")
            claw.says("the claw goes back")
            one.keep("machine-playing")
            before = claw.lines.count("the claw stops")
            one.mouse("[data-move=up]", "mouseReleased")
            wait_for("the claw to stop", lambda: claw.lines.count("the claw stops") > before)
            one.press("#camera")
            claw.says("looks through camera 2")
            # A mouse that was on a button leaves the space bar to the claw.
            one.key(" ", True)
            one.key(" ", False)
            claw.says("the claw drops")
            one.sees("The claw is on its way")
            one.keep("machine-settling")
            one.sees("You won!", "#result")
            one.keep("machine-won")
            assert one.page.run("document.querySelector('#queue').offsetParent !== null"), "who has played may queue again"
        with Claw(server, number, 0) as claw:
            two.is_invited()
            two.keep("machine-invited-phone")
            two.press("#accept")
            two.sees("You are playing")
            two.mouse("[data-move=down]", "mousePressed")
            claw.says("the claw goes front")
            two.keep("machine-playing-phone")
            two.mouse("[data-move=down]", "mouseReleased")
            assert two.page.run("document.documentElement.scrollWidth <= innerWidth"), "it fits a phone"
            two.press("#drop")
            two.sees("Nothing caught", "#result")
            two.keep("machine-lost-phone")
            one.sees("Queue up to play")
        one.sees("machine itself is not connected")
        problems = [problem for problem in browser.problems if "favicon" not in problem]
        assert not problems, problems


machine_page.settings = {"EARSHOT_APPS_DEMO": "on", "EARSHOT_APPS_MACHINE_OFFERED": "20s", "EARSHOT_APPS_MACHINE_PLAYING": "50s"}


@case
def machine_turns(server):
    """A player that does not answer, or declines, loses its place; the claw drops by itself; texts and chat reach the others."""
    number = create(server)["roomId"]
    with Claw(server, number, 0) as claw, Browser(server.folder) as browser:
        one, two = Player(browser, server, number), Player(browser, server, number)
        one.press("#queue")
        two.sees(one.name, "#entries")
        two.press("#queue")
        one.is_invited()
        one.sees("did not answer in time", "#result")
        assert not one.page.run("document.querySelector('#invite').open"), "an invitation that is over does not stay"
        two.is_invited()
        two.press("#decline")
        two.sees("given your turn up", "#result")
        wait_for("the queue to be empty", lambda: state(server, number)["queue"] == [])
        two.press("#queue")
        two.press("#unqueue")
        two.sees("You have left the queue", "#result")
        one.page.run("(document.querySelector('#line').value = '<b>hello</b>', document.querySelector('#chat').requestSubmit())")
        two.sees("<b>hello</b>", "#lines")
        one.press("#queue")
        one.is_invited()
        one.press("#accept")
        one.sees("You are playing")
        claw.says("the claw drops")
        one.sees("Nothing caught", "#result")
        data(server, "host/manage", roomId=number, roomStatus="false")
        two.sees("This machine is closed")
        data(server, "host/manage", roomId=number, roomStatus="true")
        two.sees("Queue up to play")
        page = browser.page(f"http://{server.http}/demo/machine#{number}")
        page.wait("document.querySelector('#turn')?.textContent.includes('This room is full')", "the word that the room is full")


machine_turns.settings = {"EARSHOT_APPS_DEMO": "on", "EARSHOT_APPS_MACHINE_OFFERED": "4s", "EARSHOT_APPS_MACHINE_PLAYING": "4s", "EARSHOT_APPS_MEMBERS": "3"}


@case
def machine_leavers(server):
    """A page is closed in each phase, and the next one gets a turn. By the machine's list at once, by closing after ten seconds."""
    number = create(server)["roomId"]
    with Claw(server, number, 1) as claw, Browser(server.folder) as browser:
        players = [Player(browser, server, number) for _ in range(5)]
        for place, player in enumerate(players):
            player.press("#queue")
            player.sees(f"You are number {place + 1} of", "#place")
        invited, playing, settling, away, last = players
        invited.is_invited()
        invited.close()
        playing.is_invited()
        playing.press("#accept")
        playing.sees("You are playing")
        playing.close()
        # Its player gone, the claw drops; the machine says how it went.
        claw.says("the claw drops")
        settling.is_invited()
        settling.press("#accept")
        settling.sees("You are playing")
        settling.press("#drop")
        settling.sees("on its way")
        settling.close()
        away.is_invited()
        away.press("#accept")
        away.sees("You are playing")
        away.page.run("location.hash = ''")
        away.sees("Panda", "#machines")
        last.is_invited()
        wait_for("the others to be gone", lambda: [entry["key"] for entry in state(server, number)["queue"]] == [last.accid])


machine_leavers.settings = {"EARSHOT_APPS_DEMO": "on", "EARSHOT_APPS_MACHINE_OFFERED": "50s", "EARSHOT_APPS_MACHINE_PLAYING": "50s"}


@case
def machine_flood(server):
    """A player sends forty commands a second: the device gets thirty in each, the others are refused, and neither camera loses a picture."""
    machine = create(server)
    number = machine["roomId"]
    account = data(server, "tourist")
    with Camera(server, machine["pushUrl1"], "red"), Camera(server, machine["pushUrl2"], "blue"), Claw(server, number, 1) as claw:
        wait_for("both cameras", lambda: sum(stream["state"] == "live" for stream in server.api("streams")["list"]) == 2)
        watched = [subprocess.Popen(["ffprobe", "-v", "error", "-select_streams", "v", "-read_intervals", "%+8", "-show_entries", "packet=pts_time", "-of", "csv=p=0",
                                     f"http://{server.http}/live/m-{number}{slot}.flv"], stdout=subprocess.PIPE, text=True) for slot in ("", "-2")]
        outcome = subprocess.run(
            [sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "machine_player.py"),
             f"ws://{server.http}/channel?token={account['imToken']}&room=m-{number}", "40", "5"],
            env={**os.environ, "PYTHONPATH": tools.packages("websockets-15.0.1", "websockets==15.0.1"), "NO_PROXY": "*", "PYTHONDONTWRITEBYTECODE": "1"},
            stdout=subprocess.PIPE, text=True, timeout=120, check=True)
        told = json.loads(outcome.stdout)
        times = [[float(line.rstrip(",")) for line in probe.communicate(timeout=60)[0].split()] for probe in watched]
    # The device acknowledges each command that it gets.
    assert told["sent"] == 200 and told["taken"] + told["refused"] == 200, told
    # What came while the player stood still it sees at once.
    assert told["refused"] >= 20 and told["most"] <= 30 * (1 + math.ceil(told["late"] - 0.1)), told
    assert sum("the claw goes" in line for line in claw.lines) == told["taken"], told
    for pictures in times:
        gaps = [after - before for before, after in zip(pictures, pictures[1:])]
        assert len(pictures) >= 70 and max(gaps) < 0.11, (len(pictures), max(gaps))


@case
def machine_kill(server):
    """The server is killed in the middle of a game: the pages say so and come back, the game is over, and the next one is called."""
    number = create(server)["roomId"]
    with Claw(server, number, 1) as claw, Browser(server.folder) as browser:
        one, two = Player(browser, server, number), Player(browser, server, number)
        one.press("#queue")
        two.sees(one.name, "#entries")
        two.press("#queue")
        one.is_invited()
        one.press("#accept")
        one.sees("You are playing")
        two.sees("You are number 2", "#place")
        server.stop(signal.SIGKILL)
        for player in (one, two):
            player.sees("The connection was lost")
            assert player.page.run("document.querySelector('#pad').hidden")
        server.start()
        two.is_invited()
        one.sees("your game was cut short", "#result")
        two.press("#accept")
        two.press("#drop")
        two.sees("You won!", "#result")
        claw.says("trying again")


machine_kill.settings = {"EARSHOT_APPS_DEMO": "on"}


@case
def machine_phases(server):
    """The device vanishes, or the server is killed, in each phase: the turn is over as the rules say, and the next player plays."""
    folder = tools.packages("websockets-15.0.1", "websockets==15.0.1")
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "machine_phases.py")
    for what in ("vanish", "gone"):
        machines = {}
        try:
            for phase in ("offered", "playing", "settling"):
                known = create(server, accid=f"{what}-{phase}")
                urls = [f"ws://{server.http}/channel?token={known['creatorToken']}"]
                urls += [f"ws://{server.http}/channel?token={data(server, 'tourist')['imToken']}&room=m-{known['roomId']}" for _ in range(2)]
                machines[phase] = known["roomId"], subprocess.Popen(
                    [sys.executable, script, *urls, phase], env={**os.environ, "PYTHONPATH": folder, "NO_PROXY": "*"}, stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE, text=True)
            for phase, (_, people) in machines.items():
                assert people.stdout.readline() == "there\n", f"{phase} does not come"
            if what == "gone":
                server.stop(signal.SIGKILL)
                server.start()
            for _, people in machines.values():
                people.stdin.write(f"{what}\n")
                people.stdin.flush()
            for phase, (number, people) in machines.items():
                assert people.stdout.readline() == "done\n", f"{what} in {phase}: the next one does not play"
                events = server.api(f"rooms/m-{number}/events?limit=1000")["list"]
                assert [event["number"] for event in events] == list(range(1, len(events) + 1)), "no event is missing"
                ends = [event["data"]["endReason"] for event in events if event["kind"] == "game.ended"]
                assert ends == ["deviceGone" if what == "vanish" else "serverRestart", "result"], (what, phase, ends)
        finally:
            for _, people in machines.values():
                people.kill()
                people.communicate()


machine_phases.settings = {"EARSHOT_APPS_MACHINE_OFFERED": "40s", "EARSHOT_APPS_MACHINE_PLAYING": "40s", "EARSHOT_APPS_MACHINE_SETTLING": "40s"}


@case
def machine_words(server):
    """The page says why nobody can play (no machine, paused, the account elsewhere, removed, gone), and makes a machine."""
    with Browser(server.folder) as browser:
        host = browser.page(f"http://{server.http}/demo/machine?host=1")
        host.wait("document.querySelector('#status')?.textContent === 'There is no machine at the moment.'", "the word that there is none")
        host.run("document.querySelector('#hostName').value = 'Bears'")
        host.click("Make it")
        script = host.wait("document.querySelector('#made').offsetParent && document.querySelector('#script').textContent", "the commands")
        number = script.split()[-1]
        known = data(server, "host/query", roomId=number)
        for camera in (1, 2):
            # What comes after the name says until when it holds: the page asked a moment before.
            address, shown = known[f"pushUrl{camera}"].split("?")[0], host.run(f"document.querySelector('#camera{camera}').textContent")
            assert re.search(rf"'{re.escape(address)}\?txSecret=\w+&txTime=\w+'", shown), f"{address} is not in {shown}"
        host.wait("document.querySelector('#machines')?.textContent.includes('Bears')", "it in the list")
        host.open(f"http://{server.http}/demo/machine#1")
        host.wait("document.querySelector('#status.bad')?.textContent.includes('not in the list')", "the word that there is no such machine")
        one = Player(browser, server, number)
        one.sees("machine itself is not connected")
        one.sees("No picture at the moment", "#picture")
        with Claw(server, number, 1):
            one.sees("Queue up to play")
            server.api(f"gatherings/m-{number}/queue/pause", {})
            one.sees("The queue is paused")
            assert one.page.run("document.querySelector('#queue').disabled"), "nobody can queue now"
            late = Player(browser, server, number, can_queue=False)
            late.sees("The queue is paused")
            server.api(f"gatherings/m-{number}/queue/resume", {})
            # The same account in another tab, as when a tab is doubled.
            late.page.run(f"(sessionStorage.setItem('sid', {json.dumps(one.accid)}), location.reload())")
            one.sees("another window")
            one.press("#here")
            one.sees("Queue up to play")
            late.sees("another window")
            server.api(f"gatherings/m-{number}/kick", {"userId": one.accid})
            one.sees("You were removed from this room")
            assert one.page.run("document.querySelector('#queue').offsetParent === null"), "who was removed cannot queue"
            other = Player(browser, server, number, language="zh-CN", width=390, height=844, is_phone=True)
            other.sees("排队即可开始游戏")
            other.press("#queue")
            other.is_invited()
            other.keep("machine-invited-chinese")
            server.api(f"gatherings/m-{number}/end", {})
            other.sees("这台机器已不存在")
            assert not other.page.run("document.querySelector('#invite').open")


machine_words.settings = {"EARSHOT_APPS_DEMO": "on", "EARSHOT_APPS_MACHINE_OFFERED": "40s"}

# A page's side of the vendor's API: what happens is written into `log`, and the promises are for its callbacks.
SDK_PAGE = """(async (account, token, number) => {
    const script = document.createElement('script');
    script.src = '/sdk/nim.js';
    await new Promise((resolve, reject) => { script.onload = resolve; script.onerror = reject; document.head.append(script); });
    window.log = [];
    const note = (name) => (value) => { log.push([name, value]); };
    window.nim = await new Promise((resolve) => {
        const made = SDK.NIM.getInstance({ account, token, onconnect: () => resolve(made), ondisconnect: note('nim gone'), oncustomsysmsg: ({ content }) => log.push(['command', JSON.parse(content)]) });
    });
    const { address } = await new Promise((resolve, reject) => nim.getChatroomAddress({ chatroomId: number, done: (error, found) => (error ? reject(error) : resolve(found)) }));
    window.room = await new Promise((resolve, reject) => {
        const made = SDK.Chatroom.getInstance({ account, token, chatroomId: number, chatroomAddresses: address, onconnect: () => { log.push(['connect']); resolve(made); }, onerror: reject,
            onwillreconnect: note('reconnect'), ondisconnect: note('gone'),
            onmsgs: (messages) => messages.forEach((each) => log.push(each.type === 'notification'
                ? [each.attach.type, each.attach.queueChange?.type || each.attach.fromNick, each.attach.queueChange?.elementKey || each.attach.from] : [each.type, each.text, each.fromNick])) });
    });
    window.ask = (name, options) => new Promise((resolve) => room[name]({ ...options, done: (error, given, content) => resolve({ error: error?.code, content: content || given }) }));
    window.order = (content) => new Promise((resolve) => nim.sendCustomSysMsg({ to: 'claw1', content: JSON.stringify(content), done: (error) => resolve(error?.code || null) }));
    window.invited = () => log.findLast(([name, value]) => name === 'command' && value.command === 11)?.[1].data;
})"""


@case
def machine_sdk(server):
    """/sdk/nim.js by the calls of the vendor's API: queue, chat, a game, and a connection that comes back."""
    number = create(server)["roomId"]
    with Claw(server, number, 1) as claw, Browser(server.folder) as browser:
        pages, accounts = [], []
        for _ in range(2):
            guest = data(server, "tourist")
            page = browser.page(f"http://{server.http}/demo/machine")
            page.wait("document.querySelector('#machines a') !== null", "a page of this server")
            arguments = [guest["accid"], guest["imToken"], number]
            page.run(f"{SDK_PAGE}(...{json.dumps(arguments)})")
            pages.append(page)
            accounts.append(guest)
        one, two = pages
        had = lambda page, *what: page.wait(  # noqa: E731
            f"log.some((entry) => JSON.stringify(entry.slice(0, {len(what)})) === {json.dumps(json.dumps(what, separators=(',', ':'), ensure_ascii=False))})", f"{what}", 30)
        had(one, "memberEnter", accounts[1]["nickname"], accounts[1]["accid"])
        value = json.dumps({"nick": accounts[0]["nickname"], "webrtc": 0, "h5": 1})
        assert one.run(f"ask('queueOffer', {{ elementKey: {json.dumps(accounts[0]['accid'])}, elementValue: {json.dumps(value)}, transient: true }})") == {"content": {}}
        had(two, "updateQueue", "OFFER", accounts[0]["accid"])
        assert two.run("ask('queueOffer', { elementKey: 'somebody', elementValue: '{}' })")["error"] == 403
        assert two.run("ask('queueOffer', { elementValue: '{\"nick\":\"two\"}' })") == {"content": {}}
        assert two.run("ask('queueList')")["content"]["queueList"] == [{accounts[0]["accid"]: value}, {accounts[1]["accid"]: '{"nick":"two"}'}]
        first = {"elementKey": accounts[0]["accid"], "elementValue": value}
        peak = two.run("ask('queuePeak')")
        assert peak == {"content": first}, peak
        refused = two.run(f"ask('queuePoll', {{ elementKey: {json.dumps(accounts[0]['accid'])} }})")
        assert refused["error"] == "not_yours", refused
        own = {"elementKey": accounts[1]["accid"], "elementValue": '{"nick":"two"}'}
        polled = two.run(f"ask('queuePoll', {{ elementKey: {json.dumps(accounts[1]['accid'])} }})")
        assert polled == {"content": own}, polled
        had(one, "updateQueue", "POLL", accounts[1]["accid"])
        assert one.run("ask('queueList')")["content"]["queueList"] == [{accounts[0]["accid"]: value}]
        assert two.run("ask('queueOffer', { elementValue: '{\"nick\":\"two\"}' })") == {"content": {}}
        assert one.run("ask('sendText', { text: 'good luck' })")["content"]["flow"] == "out"
        had(two, "text", "good luck", accounts[0]["nickname"])
        assert two.run("order({ command: 1, data: 'left' })") is None
        had(two, "command", {"command": 5, "data": {"command": 1, "data": "left"}, "code": 0})
        one.wait("Boolean(invited())", "the invitation")
        assert one.run("order({ command: 12, data: invited(), serial: 7 })") is None
        assert one.run("order({ command: 1, data: 'right' })") is None
        had(one, "command", {"command": 5, "data": {"command": 1, "data": "right"}, "code": 200})
        one.run("order({ command: 2 })")
        claw.says("the claw drops")
        had(one, "command", {"command": 4, "data": "true"})
        had(one, "updateQueue", "POLL", accounts[0]["accid"])
        two.wait("Boolean(invited())", "the next one's invitation")
        two.run("order({ command: 13, data: invited() })")
        had(two, "updateQueue", "POLL", accounts[1]["accid"])
        assert two.run("ask('queueOffer', { elementValue: '{\"nick\":\"two\"}' })") == {"content": {}}
        server.stop(signal.SIGKILL)
        one.wait("log.some(([name]) => name === 'reconnect')", "the loss")
        assert one.run("ask('queueList')")["error"] == "Error_Connection_Socket_State_not_Match"
        one.run("log.length = 0")
        server.start()
        had(one, "connect")
        had(one, "updateQueue", "OFFER", accounts[1]["accid"])
        two.run("new Promise((resolve) => room.destroy({ done: resolve }))")
        had(two, "gone", {"code": "logout", "message": "The page has disconnected."})
        assert two.run("order({ command: 2 })") == "Error_Connection_Socket_State_not_Match"
        # Away at first, and out when its time is over.
        had(one, "memberExit", accounts[1]["nickname"], accounts[1]["accid"])
        # Two pages of one account: the first one hears that it is out, and stays out.
        page = browser.page(f"http://{server.http}/demo/machine")
        page.wait("document.querySelector('#machines a') !== null", "a page of this server")
        page.run(f"{SDK_PAGE}(...{json.dumps([accounts[0]['accid'], accounts[0]['imToken'], number])})")
        one.wait("log.some(([name, value]) => name === 'gone' && value.reason === 'samePlatformKick')", "the other login")
        problems = [problem for problem in browser.problems if "favicon" not in problem and "WebSocket" not in problem and "ERR_" not in problem]
        assert not problems, problems


machine_sdk.settings = {"EARSHOT_APPS_DEMO": "on"}


@case
def machine_codes(server):
    """Every code of the HTTP API, by a request that earns it."""
    def code(path, **parameters):
        return call(server, path, **parameters)["code"]

    guest = data(server, "tourist")
    number = create(server)["roomId"]
    assert data(server, "tourist", sid=guest["accid"])["accid"] == guest["accid"]
    assert code("room/list", sid=guest["accid"]) == 200
    assert code("room/list") == code("room/list", sid=" ") == code("room/list", sid=guest["accid"], limit="x") == 400
    assert code("room/list", sid="player123456789") == 401
    assert code("host/create", accid="a b", nickname="claw", name="x") == code("host/create", accid="a" * 21, nickname="claw", name="x") == 901
    assert code("host/create", accid="b", nickname="claw!", name="x") == code("host/create", accid="b", nickname="a" * 11, name="x") == 902
    assert code("host/create", accid="b", nickname="claw") == code("host/manage", roomId=number) == code("host/query") == 400
    assert code("host/create", accid="CLAW1", nickname="claw", name="x") == 906
    assert code("host/query", roomId=1) == code("host/manage", roomId=1, bePublic="true") == 804
    assert code("nothing") == 404
    with urllib.request.urlopen(f"http://{server.http}/dollsCatcher/tourist", timeout=30) as answer:
        assert json.load(answer)["code"] == 400, "not a POST"
    # As the machines' program asks: in the query.
    with urllib.request.urlopen(f"http://{server.http}/dollsCatcher/host/query?roomId={number}", b"", timeout=30) as answer:
        assert json.load(answer)["data"]["roomId"] == number
    for path in ("tourist", "host/query"):
        request = urllib.request.Request(f"http://{server.http}/dollsCatcher/{path}", f"roomId={number}".encode(), {"X-Forwarded-For": "192.0.2.7"})
        with urllib.request.urlopen(request, timeout=30) as answer:
            assert json.load(answer)["code"] == 403, path
    codes = [code("tourist") for _ in range(100)]
    assert codes == [200] * 99 + [1101], codes
    assert code("tourist", sid=guest["accid"]) == 200, "who has an account keeps it"
    assert call(server, "room/list", sid=guest["accid"])["data"]["total"] == 1
    # Last, as it may hold for a while. Requests behind one another in one connection are fast enough on any machine.
    host, port = server.http.split(":")
    with socket.create_connection((host, int(port)), timeout=30) as peer:
        one = f"POST /dollsCatcher/nothing HTTP/1.1\r\nHost: {server.http}\r\nContent-Length: 0\r\n\r\n".encode()
        writer = threading.Thread(target=send, args=(peer, one, 50_000), daemon=True)
        writer.start()
        seen = b""
        while b'"code":407' not in seen:
            got = peer.recv(1 << 16)
            assert got, "the connection ended before too many requests"
            seen = seen[-20:] + got
        peer.shutdown(socket.SHUT_RDWR)
        writer.join(10)


def send(peer, request, count):
    with contextlib.suppress(OSError):
        for _ in range(count):
            peer.sendall(request)


machine_codes.settings = {"EARSHOT_ACCESS_TRUSTED_PROXIES": "127.0.0.1"}
