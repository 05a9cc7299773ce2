"""Classes by their clients: cases as in cases.py."""
import json
import os
import urllib.request

import class_sdk
from browser import Browser, BrowserError
from registry import case
from server import Device
from sound import loudness

FAKE_DEVICES = ["--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"]
DEMO = {"EARSHOT_APPS_DEMO": "on"}

# The others' pictures, by name: a number that changes with the picture; null without one.
PICTURES = """Object.fromEntries([...document.querySelectorAll('.tile:not(.self)')].map((tile) => {
    const name = tile.querySelector('.who').textContent, video = tile.querySelector('video');
    if (!video.videoWidth || video.classList.contains('dark')) return [name, null];
    const canvas = new OffscreenCanvas(32, 24), context = canvas.getContext('2d');
    context.drawImage(video, 0, 0, 32, 24);
    return [name, [...context.getImageData(0, 0, 32, 24).data].reduce((sum, value, index) => (sum * 31 + value * (index % 7 + 1)) % 1000003, 7)];
}))"""

# Keeps a page's connections to others in `links`, to tell of them when a picture is missed.
LINKS = """(() => {
    const Known = RTCPeerConnection;
    window.links = [];
    window.RTCPeerConnection = class extends Known { constructor(...values) { super(...values); links.push(this); } };
})()"""
STATES = """JSON.stringify({
    links: links.map((link) => [link.connectionState, link.iceConnectionState, link.signalingState]),
    videos: [...document.querySelectorAll('.tile video')].map((video) => [
        video.videoWidth, video.readyState, video.paused, video.className, ...(video.srcObject?.getTracks() ?? []).map((track) => [track.kind, track.muted, track.readyState])]),
})"""
# All descriptions that a page sends for its first link are lost on their way. (Of one alone, the other side's offer may take the place.)
LOSES_FIRST = """(() => {
    const Known = WebSocket;
    window.lost = 0;
    let first;
    window.WebSocket = class extends Known {
        send(text) {
            const { kind, link } = JSON.parse(text).content ?? {};
            if (kind === 'description' && link === (first ??= link)) window.lost += 1; else super.send(text);
        }
    };
})()"""


def call(server, path, body, authorization=None):
    """The whole answer of a call of the class's REST API."""
    headers = {"Content-Type": "application/json", **({"Authorization": authorization} if authorization else {})}
    request = urllib.request.Request(f"http://{server.http}/classroom/api/v1/room/{path}", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.loads(answer.read())


class Person:
    """Somebody with the class's page open."""

    def __init__(self, server, browser, name, room, is_audience=False, is_phone=False, language=None, camera=True, before=""):
        """`before`: a script that runs before the page's own."""
        self.server, self.name = server, name
        self.page = browser.page(width=390 if is_phone else 1280, height=844 if is_phone else 800, is_phone=is_phone, language=language)
        self.page.send("Page.addScriptToEvaluateOnNewDocument", source=f"{LINKS};{before}")
        extra = ("&as=audience" if is_audience else "") + ("" if camera else "&camera=off")
        self.page.open(f"http://{server.http}/demo/class?room={room}&name={name}{extra}")
        self.page.wait("document.querySelector('#name')?.value && document.querySelector('#enter').textContent !== '' && document.documentElement.lang",
                       f"{name}'s page")
        self.click("#enter")

    def click(self, selector, patience=30):
        self.page.wait(f"""(() => {{
            const found = [...document.querySelectorAll({json.dumps(selector)})].find((each) => !each.disabled && each.offsetParent !== null);
            found?.click();
            return Boolean(found);
        }})()""", f"{selector} on {self.name}'s page", patience)

    def is_in(self):
        self.page.wait("!document.querySelector('#class').hidden", f"{self.name} to be in the class")
        return self

    def reads(self, text, selector="#status", patience=30):
        self.page.wait(f"document.querySelector({json.dumps(selector)})?.textContent.includes({json.dumps(text)})", f"{text!r} on {self.name}'s page", patience)

    def has_role(self, role):
        self.reads(f"· {role} ·", "#me")

    def shows(self, text):
        self.reads(text, "#stageCaption" if text else "#stageWords")

    def acts(self, name, action):
        """Presses a button of the assistant's menu for somebody."""
        self.page.wait(f"""(() => {{
            const item = [...document.querySelectorAll('#members li')].find((each) => each.querySelector('.who').textContent === {json.dumps(name)});
            const details = item?.querySelector('details'), button = item?.querySelector('[data-action={action}]');
            if (!button) return false;
            details.open = true;
            button.click();
            return true;
        }})()""", f"{action} for {name} on {self.name}'s page", 30)

    def says(self, text):
        self.page.run(f"(document.querySelector('#line').value = {json.dumps(text)}, document.querySelector('#chat').requestSubmit())")

    def sees(self, *names):
        """Until it has a picture of each of them that moves, and of nobody else."""
        wanted = json.dumps(sorted(names))
        try:
            self.page.wait(f"(() => {{ const now = {PICTURES}, seen = Object.keys(now).filter((name) => now[name] !== null).sort();"
                           f" return JSON.stringify(seen) === JSON.stringify({wanted}); }})()",
                           f"{self.name} to see {wanted}", 40)
        except BrowserError as error:
            raise BrowserError(f"{error}\n{self.name}'s page: {self.page.run(STATES)}") from None
        before = json.dumps(self.page.run(PICTURES))
        self.page.wait(f"(() => {{ const now = {PICTURES}, before = {before}; return {wanted}.every((name) => now[name] !== null && now[name] !== before[name]); }})()",
                       f"the pictures on {self.name}'s page to move", 30)

    def hears(self, name, is_heard=True):
        """Until somebody's microphone is heard, or is not: what was on its way still arrives."""
        script = loudness(f"[...document.querySelectorAll('.tile')].find((each) => each.querySelector('.who').textContent === {json.dumps(name)})")
        self.page.wait(f"{script}.then((loudness) => {'loudness > 0.01' if is_heard else 'loudness < 0.001'})", f"{name} to be {'heard' if is_heard else 'silent'}", 20)

    def keeps(self, picture):
        """A screenshot, when they are kept."""
        if self.server.keep:
            os.makedirs(self.server.keep, exist_ok=True)
            with open(os.path.join(self.server.keep, f"class-{picture}.png"), "wb") as file:
                file.write(self.page.picture())
        assert self.page.run("document.documentElement.scrollWidth <= innerWidth"), f"{self.name}'s page is wider than its window"


def check(browser):
    problems = [problem for problem in browser.problems if "favicon" not in problem]
    assert not problems, problems


@case
def class_page(server):
    """Four people: they see each other; devices, the display, chat, roles and a kick are seen by those whom they concern."""
    with Browser(server.folder, FAKE_DEVICES) as browser:
        ann = Person(server, browser, "Ann", "math").is_in()
        tim = Person(server, browser, "Tim", "math", is_phone=True).is_in()
        stu = Person(server, browser, "<i>Stu", "math", is_phone=True).is_in()
        olga = Person(server, browser, "Olga", "math", is_audience=True).is_in()
        for person, role in [(ann, "Assistant"), (tim, "Teacher"), (stu, "Student"), (olga, "Audience")]:
            person.has_role(role)
        ann.sees("Tim", "<i>Stu")
        tim.sees("Ann", "<i>Stu")
        olga.sees("Ann", "Tim", "<i>Stu")
        for person in [ann, tim, stu, olga]:
            person.shows("Teacher: Tim")
        assert stu.page.run("document.querySelector('#stageVideo').videoWidth") > 0
        for person in [tim, olga]:
            person.keeps(person.name)
        stu.says("hello <b>all</b>")
        for person in [ann, tim, olga]:
            person.reads("<i>Stu hello <b>all</b>", "#lines")

        # The assistant switches a microphone off: the page says so, the track is silent, and all know.
        ann.hears("<i>Stu")
        ann.acts("<i>Stu", "mute")
        stu.reads("Ann has switched your microphone off.")
        assert stu.page.run("document.querySelector('.tile.self video').srcObject.getAudioTracks()[0].enabled") is False
        olga.page.wait("[...document.querySelectorAll('.tile')].some((tile) => /Stu.*microphone off/.test(tile.textContent))", "the word at the picture")
        ann.hears("<i>Stu", is_heard=False)
        stu.keeps("muted")
        # On again only if the member wants it.
        ann.acts("<i>Stu", "askMicrophone")
        stu.reads("Ann asks you to switch your microphone on.", "#askText")
        stu.keeps("asked")
        stu.click("#askYes")
        ann.reads("<i>Stu said yes.")
        ann.hears("<i>Stu")
        # A camera that is off is off for all, and its picture comes back.
        tim.click("#camera")
        ann.sees("<i>Stu")
        ann.reads("The camera is off.", "#stageWords")
        tim.click("#camera")
        ann.sees("Tim", "<i>Stu")

        # Every member sees what is on display.
        ann.page.click("Assistant")
        for person in [ann, tim, stu, olga]:
            person.shows("Assistant: Ann")
        tim.page.click("Nothing")
        for person in [ann, tim, stu, olga]:
            person.reads("Nothing is shown", "#stageWords")
        tim.page.click("+ New whiteboard")
        for person, role in [(ann, 1), (tim, 2), (stu, 3), (olga, 4)]:
            person.shows("Whiteboard 1")
            address = f"[/]board[/][0-9a-f]{{32}}[?]k=1&role={role}&roomId=math&authorization=[^&]+$"
            person.page.wait(f"/{address}/.test(document.querySelector('#stageBoard').src)", "the board's address")
        tim.click("#pageOn")
        ann.reads("Page 2", "#page")
        ann.keeps("board")
        ann.page.click("Delete whiteboard")
        ann.click("#askYes")
        stu.reads("Nothing is shown", "#stageWords")

        ann.acts("<i>Stu", "makeTeacher")
        stu.has_role("Teacher")
        tim.has_role("Student")
        olga.shows("Teacher: <i>Stu")
        ann.acts("<i>Stu", "kick")
        ann.click("#askYes")
        stu.reads("The assistant has removed you from the class.")
        stu.page.wait("document.querySelector('#class').hidden && !document.querySelector('#join').hidden", "the way back in")
        stu.keeps("kicked")
        tim.sees("Ann")
        ann.acts("Tim", "handOver")
        ann.click("#askYes")
        tim.has_role("Assistant")
        ann.has_role("Student")
        ann.click("#leave")
        ann.reads("You have left the class.")
        tim.page.wait("document.querySelectorAll('.tile').length === 1", "Ann to go")
        check(browser)


class_page.settings = DEMO


@case
def class_hands(server):
    """Audience asks to speak: rejected, then approved; and is invited, which it may decline."""
    with Browser(server.folder, FAKE_DEVICES) as browser:
        ann = Person(server, browser, "Ann", "music").is_in()
        olga = Person(server, browser, "Olga", "music", is_audience=True, is_phone=True).is_in()
        # With a microphone alone.
        paul = Person(server, browser, "Paul", "music", is_audience=True).is_in()
        olga.reads("Raise a hand to speak.")
        olga.click("#hand")
        ann.reads("Olga wants to speak.", "#hands")
        olga.reads("Your hand is raised.")
        ann.keeps("hand")
        olga.keeps("waiting")
        ann.page.click("Not now")
        olga.reads("cannot let you speak now")
        olga.click("#hand")
        ann.page.click("Let speak")
        olga.has_role("Student")
        ann.sees("Olga")
        paul.sees("Ann", "Olga")
        olga.sees("Ann")
        assert ann.page.run("document.querySelector('#handsPanel').hidden")
        ann.acts("Paul", "invite")
        paul.reads("Ann invites you to speak as Student.", "#askText")
        paul.click("#askNo")
        ann.reads("Paul said no.")
        ann.acts("Paul", "invite")
        paul.reads("Ann invites you", "#askText")
        paul.click("#askYes")
        paul.has_role("Student")
        olga.sees("Ann", "Paul")
        ann.acts("Olga", "downgrade")
        olga.has_role("Audience")
        olga.reads("moved to the audience")
        paul.sees("Ann")
        assert olga.page.run("document.querySelectorAll('.tile.self').length") == 0
        check(browser)


class_hands.settings = DEMO


@case
def class_expiry(server):
    """An invitation and a raised hand that nobody answers expire on both sides."""
    with Browser(server.folder, FAKE_DEVICES) as browser:
        ann = Person(server, browser, "Ann", "art").is_in()
        olga = Person(server, browser, "Olga", "art", is_audience=True).is_in()
        ann.acts("Olga", "invite")
        olga.reads("Ann invites you", "#askText")
        olga.reads("An invitation to you has expired.")
        assert not olga.page.run("document.querySelector('#ask').open")
        ann.reads("Olga did not answer in time.")
        olga.click("#hand")
        ann.reads("Olga wants to speak.", "#hands")
        olga.reads("Nobody answered your raised hand.")
        ann.page.wait("document.querySelector('#handsPanel').hidden", "the hand to go")
        assert olga.page.run("!document.querySelector('#hand').disabled")
        olga.has_role("Audience")
        check(browser)


class_expiry.settings = {**DEMO, "EARSHOT_APPS_CLASSROOM_TICKET": "3s"}


@case
def class_full(server):
    """The seventeenth learner reads that the class is full, and joins as audience."""
    for index in range(16):
        joined = call(server, "join", {"roomId": "full", "userName": f"Learner {index + 1}", "disableCamera": True})
        assert joined["errCode"] == 0, joined
    with Browser(server.folder, FAKE_DEVICES) as browser:
        ann = Person(server, browser, "Ann", "full", is_phone=True)
        ann.reads("The class is full")
        assert ann.page.run("document.querySelector('#class').hidden")
        ann.keeps("full")
        ann.click("#asAudience")
        ann.click("#enter")
        ann.is_in().has_role("Audience")
        ann.reads("(17)", "#membersTitle")
        ann.keeps("full-audience")
        check(browser)


class_full.settings = DEMO


@case
def class_camera_refused(server):
    """The browser refuses the camera: clear words in the reader's language, and the class goes on without."""
    with Browser(server.folder, [FAKE_DEVICES[0], "--deny-permission-prompts"]) as browser:
        ann = Person(server, browser, "Ann", "german", is_phone=True, language="zh-CN").is_in()
        ann.reads("浏览器拒绝了摄像头或麦克风")
        ann.page.wait("document.querySelector('.tile.self').textContent.includes('麦克风和摄像头已关')", "the word at one's own picture")
        ann.keeps("refused")
        # A camera that the person did not want is not asked for.
        bob = Person(server, browser, "Bob", "german", camera=False).is_in()
        bob.has_role("Teacher")
        ann.says("你好")
        bob.reads("Ann 你好", "#lines")
        check(browser)


class_camera_refused.settings = DEMO


@case
def class_cameras(server):
    """With eight cameras on, the ninth stays off, and can be switched on once another is off."""
    joined = [call(server, "join", {"roomId": "many", "userName": f"Learner {index + 1}"})["data"]["result"] for index in range(8)]
    with Browser(server.folder, FAKE_DEVICES) as browser:
        ann = Person(server, browser, "Ann", "many").is_in()
        ann.reads("Eight cameras are on already")
        ann.page.wait("document.querySelector('.tile.self .off').textContent === 'camera off'", "the word at one's own picture")
        assert ann.page.run("document.querySelector('.tile.self video').srcObject.getTracks().map((track) => track.kind).join()") == "audio"
        ann.click("#camera")
        ann.reads("Eight cameras are on already")
        call(server, "device/sync", {"roomId": "many", "cameraOn": False}, joined[7]["authorization"])
        ann.page.wait("document.querySelectorAll('#people .off:not(:empty)').length === 2", "the other camera to go off")
        ann.click("#camera")
        ann.page.wait("document.querySelector('.tile.self video').videoWidth > 0", "one's own picture")
        check(browser)


class_cameras.settings = DEMO


@case
def class_screen_and_live(server):
    """A screen is shown to all; and what a program pushes to the class can be watched."""
    with Browser(server.folder, FAKE_DEVICES) as browser:
        ann = Person(server, browser, "Ann", "film").is_in()
        olga = Person(server, browser, "Olga", "film", is_audience=True).is_in()
        olga.sees("Ann")
        ann.click("#screen")
        ann.reads("Your screen is shown to all.", "#stageWords")
        olga.shows("Screen of Ann")
        olga.page.wait("document.querySelector('#stageVideo').videoWidth > 320", "Ann's screen")
        olga.sees("Ann")
        ann.page.click("Stop sharing")
        for person in [ann, olga]:
            person.reads("Nothing is shown", "#stageWords")
        olga.click("#live > summary")
        olga.page.click("Teacher", within="document.querySelector('#liveSlots')")
        olga.page.wait("document.querySelector('#liveWords').textContent !== ''", "words while nothing is pushed")
        with Device(server, "live/class-film", audio="sine=frequency=440:sample_rate=44100"):
            olga.page.wait("document.querySelector('#liveVideo').videoWidth === 320 && document.querySelector('#liveVideo').currentTime > 0.5", "the live picture", 40)
            olga.page.run("document.querySelector('#live').scrollIntoView()")
            olga.keeps("live")
            olga.page.click("Teacher", within="document.querySelector('#liveSlots')")
            olga.page.wait("document.querySelector('#liveVideo').hidden", "the end of it")


class_screen_and_live.settings = DEMO


@case
def class_lost(server):
    """The server is restarted: pages say that they try again, are in the class again, and keep their pictures. A page that is loaded anew keeps its place."""
    with Browser(server.folder, FAKE_DEVICES) as browser:
        ann = Person(server, browser, "Ann", "law").is_in()
        tim = Person(server, browser, "Tim", "law").is_in()
        ann.sees("Tim")
        tim.sees("Ann")
        server.stop()
        for person in [ann, tim]:
            person.reads("The connection to the server was lost. Trying again")
        ann.keeps("lost")
        server.start()
        for person in [ann, tim]:
            person.reads("You are in the class.")
        ann.says("are you there?")
        tim.reads("Ann are you there?", "#lines")
        ann.sees("Tim")
        tim.page.run("location.reload()")
        tim.page.wait("performance.getEntriesByType('navigation')[0].type === 'reload' && document.querySelector('#name')?.value === 'Tim'", "the page anew")
        tim.click("#enter")
        tim.is_in().has_role("Teacher")
        tim.reads("Ann are you there?", "#lines")
        tim.sees("Ann")
        ann.sees("Tim")
        ann.reads("(2)", "#membersTitle")
        # The same person in a second window: the first says so, and does not fight for the place.
        again = browser.page(f"http://{server.http}/demo/class")
        again.wait("document.querySelector('#enter')?.textContent === 'Join' && document.documentElement.lang", "the second window")
        again.run(f"(sessionStorage.setItem('class', {json.dumps(tim.page.run('sessionStorage.getItem(`class`)'))}), location.reload())")
        again.wait("document.querySelector('#name')?.value === 'Tim'", "the name in the second window")
        again.click("Join")
        again.wait("document.querySelector('#me').textContent.includes('Teacher')", "the place in the second window")
        tim.reads("You have joined from another window.")
        tim.keeps("replaced")
        ann.sees("Tim")


class_lost.settings = DEMO


@case
def class_offer_lost(server):
    """A link's descriptions are lost on their way: whoever called calls again, and both see each other."""
    with Browser(server.folder, FAKE_DEVICES) as browser:
        ann = Person(server, browser, "Ann", "lossy", before=LOSES_FIRST).is_in()
        tim = Person(server, browser, "Tim", "lossy").is_in()
        ann.page.wait("lost > 0", "the lost description")
        ann.sees("Tim")
        tim.sees("Ann")
        assert tim.page.run("links.length") > 1, "nobody called again"


class_offer_lost.settings = DEMO


@case
def class_sdk_script(server):
    """Apps written for the vendor's SDK, by the script that stands in for it: messages, history, streams, loss and end."""
    with Browser(server.folder, FAKE_DEVICES) as browser:
        class_sdk.run(server, browser, call)
        # A refused token and a stopped server are part of it.
        browser.problems = [problem for problem in browser.problems if "/channel" not in problem]
        check(browser)


class_sdk_script.settings = DEMO
