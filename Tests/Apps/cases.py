"""The apps' cases: each a function that gets a server, and raises when something is wrong."""
import json
import os
import re
import signal
import subprocess
import sys
import urllib.request

import guide
import tools
from browser import Browser
from proxy import CLIENT, Nginx
from registry import case
from server import wait_for
from sound import loudness

def key(server, name, role):
    """The file of a new key."""
    made = subprocess.run(
        [server.binary, "keys", "create", name, "--role", role, "--json", "--data", os.path.join(server.folder, "data")],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30, check=True)
    path = os.path.join(server.folder, f"{name}.json")
    with open(path, "w", encoding="utf-8") as file:
        file.write(made.stdout)
    assert json.loads(made.stdout)["secretId"].startswith("AKID")
    return path


@case
def cloud_sdk(server):
    """The vendor's SDK of today, by both methods and all three signatures."""
    folder = tools.packages("tencent-3.1.195", "tencentcloud-sdk-python-live==3.1.195")
    tools.python(folder, "cloud_sdk.py", server.http, server.rtmp, key(server, "shop", "ops"), key(server, "viewer", "backend"), "--all", timeout=400)
    lines = server.api("audit?limit=200")["list"]
    acts = {line["operation"] for line in lines if line["token"] == "shop"}
    assert acts == {"DropLiveStream", "ForbidLiveStream", "ResumeLiveStream"}, acts
    assert not any(secret in server.log() for secret in [json.load(open(os.path.join(server.folder, "shop.json")))["secretKey"]])


@case
def cloud_sdk_of_old(server):
    """The SDK of the former major version, which signs another scope and asks for the list of bans."""
    folder = tools.packages("tencent-3.0.700", "tencentcloud-sdk-python-live==3.0.700", "tencentcloud-sdk-python-common==3.0.700")
    tools.python(folder, "cloud_sdk.py", server.http, server.rtmp, key(server, "shop", "ops"), key(server, "viewer", "backend"), timeout=300)


@case
def mesh_peers(server):
    """Three peers of aiortc: pictures and lines both ways, and one that is cut."""
    folder = tools.packages("aiortc-1.16.0", "aiortc==1.16.0", "websockets==15.0.1", "numpy")
    tools.python(folder, "mesh_peers.py", server.http, timeout=170)


FAKE_DEVICES = ["--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"]

# The pictures of a tab's people, as numbers that change with them; a person without a picture has null.
PICTURES = """[...document.querySelectorAll('figure:not(.self) video')].map((video) => {
    if (!video.videoWidth) return null;
    const canvas = new OffscreenCanvas(32, 24), context = canvas.getContext('2d');
    context.drawImage(video, 0, 0, 32, 24);
    return [...context.getImageData(0, 0, 32, 24).data].reduce((sum, value, index) => (sum * 31 + value * (index % 7 + 1)) % 1000003, 7);
})"""


def loudness_of(name):
    """Of the one with this name in a mesh room's page."""
    return loudness(f"[...document.querySelectorAll('figure:not(.self)')].find((each) => each.querySelector('figcaption').textContent === {json.dumps(name)})")


def join(page, base, name, room):
    page.open(f"{base}/mesh/?room={room}&name={name}")
    page.wait("document.querySelector('#name')?.value", f"{name}'s page")
    page.click({"zh": "加入"}.get(page.run("document.documentElement.lang"), "Join"))


def meet(server, base, room):
    """Three tabs see each other move, hear of a line, and of one that is killed."""
    with Browser(server.folder, FAKE_DEVICES) as browser:
        pages = [browser.page(width=900, height=700) for _ in range(3)]
        names = ["Ada", "Bo", "<b>Chén</b>"]
        for page, name in zip(pages, names):
            join(page, base, name.replace("<", "%3C").replace(">", "%3E"), room)
        for page in pages:
            page.wait(f"{PICTURES}.filter(Boolean).length === 2", "two pictures of others")
            before = page.run(PICTURES)
            page.wait(f"(() => {{ const now = {PICTURES}, before = {json.dumps(before)}; return now.every((value, index) => value !== before[index]); }})()",
                      "the pictures to move")
            others = sorted(name for name in names if name != names[pages.index(page)])
            page.wait(f"JSON.stringify([...document.querySelectorAll('figure:not(.self) figcaption')].map((e) => e.textContent).sort()) === {json.dumps(json.dumps(others, separators=(',', ':'), ensure_ascii=False))}",
                      "the others' names as text")
        for page, other in ((pages[0], names[1]), (pages[1], names[0]), (pages[2], names[0])):
            page.wait(loudness_of(other) + ".then((loudness) => loudness > 0.01)", f"{other} to be heard")
        pages[0].run("(document.querySelector('#line').value = 'hello everybody', document.querySelector('#chat').requestSubmit())")
        for page in pages[1:]:
            page.wait("document.querySelector('#lines').textContent.includes('Ada: hello everybody')", "a line over the data channel")
        pages[1].click("Mute")
        assert pages[1].run("document.querySelector('#mute').getAttribute('aria-pressed')") == "true"
        pages[0].wait(loudness_of(names[1]) + ".then((loudness) => loudness < 0.001)", f"{names[1]} to be silent")
        if server.keep:
            os.makedirs(server.keep, exist_ok=True)
            with open(os.path.join(server.keep, f"mesh-{room}.png"), "wb") as file:
                file.write(pages[0].picture())
        try:
            browser.send("Page.crash", session=pages[2].session, patience=1)
        except Exception:  # noqa: BLE001: a tab that is gone does not answer.
            pass
        for page in pages[:2]:
            page.wait("document.querySelectorAll('figure:not(.self)').length === 1", "the killed tab's picture to go", patience=15)
        pages[1].click("Leave")
        pages[0].wait("document.querySelector('#status').textContent.includes('alone')", "the word that nobody else is here", patience=15)


@case
def mesh_page(server):
    """The demo page in three tabs of Chromium."""
    meet(server, f"http://{server.http}", "lobby")


@case
def mesh_page_behind_nginx(server):
    """The same page through a proxy, which names the clients."""
    with Nginx(server) as nginx:
        meet(server, f"http://127.0.0.1:{nginx.port}", "proxied")


mesh_page_behind_nginx.settings = {"EARSHOT_ACCESS_TRUSTED_PROXIES": "127.0.0.1", "EARSHOT_APPS_MESH_FROM": f"127.0.0.1,{CLIENT}"}


@case
def camera_refused(server):
    """A page whose camera is refused says what to do, and joins without one."""
    with Browser(server.folder, ["--deny-permission-prompts"]) as browser:
        page = browser.page(width=390, height=700, is_phone=True, language="zh-CN")
        page.open(f"http://{server.http}/mesh/?name=Ada")
        page.wait("document.querySelector('#name')?.value", "the page")
        page.click("加入")
        page.wait("document.querySelector('#status.bad')?.textContent.includes('麦克风')", "what to do about the camera")
        if server.keep:
            os.makedirs(server.keep, exist_ok=True)
            with open(os.path.join(server.keep, "mesh-refused.png"), "wb") as file:
                file.write(page.picture())
        assert page.run("document.documentElement.scrollWidth <= innerWidth"), "it fits a phone"
        page.click("不开摄像头加入")
        page.wait("document.querySelector('#status').textContent.includes('只有你一人')", "the room")
        problems = [problem for problem in browser.problems if "favicon" not in problem]
        assert not problems, problems


@case
def guide_python(server):
    """The guide's back end with the vendor's SDK."""
    folder = tools.packages("tencent-3.1.195", "tencentcloud-sdk-python-live==3.1.195")
    with open(key(server, "shop", "ops"), encoding="utf-8") as file:
        made = json.load(file)
    os.environ.update(SECRET_ID=made["secretId"], SECRET_KEY=made["secretKey"])
    with tools.Device(f"rtmp://{server.rtmp}/live/walk") as device:
        wait_for("the push", lambda: server.is_live("walk"))
        [code] = guide.blocks("camera.md", "python")
        path = os.path.join(server.folder, "guide.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(guide.here(code, server))
        said = tools.python(folder, path)
        assert re.fullmatch(r"live walk \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\n", said), said
        device.ended()
        assert server.api("streams/live/walk")["state"] == "forbid"


@case
def guide_librtmp(server):
    """The guide's push with librtmp: the picture arrives, and a refusal is told."""
    [code] = guide.blocks("camera.md", "c")
    source, program = os.path.join(server.folder, "push.c"), os.path.join(server.folder, "push")
    with open(source, "w", encoding="utf-8") as file:
        file.write(code)
    subprocess.run(["cc", "-Wall", "-Wextra", "-Werror", source, "-lrtmp", "-o", program], check=True, timeout=60)
    film = f"ffmpeg -v error -re -f lavfi -i testsrc=size=320x240:rate=25 -t 60 -c:v libx264 -preset ultrafast -g 25 -pix_fmt yuv420p -f flv - | {program} "
    pushing = subprocess.Popen(["bash", "-c", f"set -o pipefail; {film} rtmp://{server.rtmp}/live/lib"], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        wait_for("the push", lambda: server.is_live("lib"))
        shown = subprocess.run(
            ["ffprobe", "-v", "error", "-show_entries", "stream=codec_name,width", "-of", "csv=p=0", f"http://{server.http}/live/lib.flv"],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=True)
        assert shown.stdout.strip() == "h264,320", shown.stdout
        server.api("streams/live/lib/forbid", {"reason": "test"})
        assert pushing.wait(30) != 0
    finally:
        pushing.kill()
        pushing.communicate()


@case
def guide_browser(server):
    """The guide's pages: two browsers that greet each other over the mesh, and a channel."""
    server.api("rooms", {"roomId": "walk"})
    with Browser(server.folder) as browser:
        [mesh] = guide.blocks("mesh.md", "js")
        pages = [browser.page(server.console.split("#")[0]) for _ in range(2)]
        for page in pages:
            page.wait("document.readyState === 'complete'", "a page of this server")
            page.run(f"{guide.here(mesh, server)}; undefined")
            page.wait("socket.readyState === 1", "the mesh")
        pages[0].wait("document.title === 'hello from the newcomer'", "the newcomer's greeting")
        [channel, ticket] = guide.blocks("channel.md", "js")
        url = server.api("rooms/walk/channel-token", {"userId": "ann"})["url"]
        page = browser.page(server.console.split("#")[0])
        page.wait("document.readyState === 'complete'", "a page of this server")
        page.run(f"const url = {json.dumps(url)}; {channel}; undefined")
        page.wait("document.title === 'queued'", "a place in the queue")
        assert server.api("gatherings/plain-walk")["queue"][0]["value"] == "first in line"
        other = server.api("rooms/walk/channel-token", {"userId": "bob"})["url"]
        page.run(
            f"(async () => {{ const url = {json.dumps(other)}; {ticket}; const bob = new WebSocket(once);"
            " bob.onmessage = ({ data }) => { document.title = JSON.parse(data).you.id; }; })(); undefined")
        page.wait("document.title === 'bob'", "a member by a ticket")


@case
def guide_machine(server):
    """The guide's player against the guide's machine: it is called, plays and wins."""
    folder = tools.packages("aiortc-1.16.0", "aiortc==1.16.0", "websockets==15.0.1", "numpy")
    number = ask(server, "dollsCatcher/host/create", b"accid=shop@town.1&nickname=bears&name=Bears")["data"]
    ask(server, "dollsCatcher/host/manage", f"roomId={number}&roomStatus=true&bePublic=true".encode())
    machine = subprocess.Popen(
        [sys.executable, os.path.join(guide.FOLDER, "machine.py"), "--http", f"http://{server.http}", "--room", str(number), "--win", "1"],
        env={**os.environ, "PYTHONPATH": folder}, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        with Browser(server.folder) as browser:
            [player] = guide.blocks("machine.md", "js")
            page = browser.page(server.console.split("#")[0])
            page.wait("document.readyState === 'complete'", "a page of this server")
            page.run(f"(async () => {{ {player} }})(); undefined")
            page.wait("document.title === 'won'", "the player to win")
    finally:
        machine.kill()
        machine.wait()


@case
def guide_class(server):
    """The guide's member of a class hears who comes."""
    with Browser(server.folder) as browser:
        [member] = guide.blocks("classroom.md", "js")
        page = browser.page(server.console.split("#")[0])
        page.wait("document.readyState === 'complete'", "a page of this server")
        page.run(f"(async () => {{ {member} }})(); undefined")
        wait_for("the class", lambda: server.api("gatherings?kind=class")["total"] == 1)
        wait_for("its first member", lambda: any(not person["awaySince"] for person in server.api("gatherings/class-guide")["people"]))
        ask(server, "classroom/api/v1/room/join", json.dumps({"roomId": "guide", "userName": "Bob"}).encode())
        page.wait("document.title === 'Bob came'", "word of Bob")


def ask(server, path, body):
    with urllib.request.urlopen(f"http://{server.http}/{path}", body, timeout=30) as answer:
        return json.loads(answer.read())


@case
def channel_kill(server):
    """The server is killed while members change their places: what was acknowledged is there, and who does not come back leaves."""
    folder = tools.packages("aiortc-1.16.0", "aiortc==1.16.0", "websockets==15.0.1", "numpy")
    server.api("rooms", {"roomId": "walk", "policy": {"neverStarted": 3600}})
    users = [f"user{index}" for index in range(8)]
    for round_number in range(3):
        urls = [server.api("rooms/walk/channel-token", {"userId": user})["url"] for user in users]
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "channel_members.py")
        members = subprocess.Popen(
            [sys.executable, script, *urls], env={**os.environ, "PYTHONPATH": folder}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        lines, seen = [], set()
        # Each has had a few answers; then the end comes at any time.
        for line in members.stdout:
            lines.append(line.split())
            if lines[-1][0] == "acknowledged":
                seen.add(lines[-1][1])
            if len(seen) == len(users) and len(lines) > 60 + 37 * round_number:
                break
        server.stop(signal.SIGKILL)
        # Read on by the same reader: it holds lines already, and half a line, that the pipe no longer has.
        lines += [line.split() for line in members.stdout]
        members.wait(timeout=60)
        last = {kind: {} for kind in ("sent", "acknowledged")}
        for kind, user, number in lines:
            last[kind][user] = int(number)
        server.start()
        found = server.api("gatherings/plain-walk")
        assert {person["userId"] for person in found["people"]} == set(users), found
        queue = {entry["key"]: int(entry["value"]) for entry in found["queue"]}
        for user in users:
            assert last["acknowledged"][user] <= queue[user] <= last["sent"][user], (user, queue, last)
    events = server.api("rooms/walk/events?limit=1000")["list"]
    assert [event["number"] for event in events] == list(range(1, len(events) + 1)), "no event is missing"


channel_kill.settings = {"EARSHOT_APPS_OFFLINE": "10m"}
