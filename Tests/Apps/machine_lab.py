"""Shared by the claw machines' cases: the HTTP API, a machine with its scripted program and cameras, and a player's page."""
import json
import os
import subprocess
import sys
import threading
import urllib.parse
import urllib.request

import pixels
import tools
from browser import BrowserError
from server import Device, wait_for

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "apps", "machine.py")


def call(server, path, **parameters):
    """The whole answer of POST /dollsCatcher/…."""
    body = urllib.parse.urlencode(parameters).encode()
    with urllib.request.urlopen(f"http://{server.http}/dollsCatcher/{path}", body, timeout=30) as answer:
        return json.load(answer)


def data(server, path, **parameters):
    answer = call(server, path, **parameters)
    assert answer["code"] == 200, (path, answer)
    return answer.get("data")


def create(server, accid="claw1", name="Panda"):
    """A machine that is open and in the list: what host/query says of it."""
    number = data(server, "host/create", accid=accid, nickname="claw", name=name)
    data(server, "host/manage", roomId=number, roomStatus="true", bePublic="true")
    return data(server, "host/query", roomId=number)


def state(server, number):
    return server.api(f"gatherings/m-{number}")


class Claw:
    """docs/apps/machine.py, and the lines that it has written."""

    def __init__(self, server, number, win):
        folder = tools.packages("websockets-15.0.1", "websockets==15.0.1")
        environment = {**os.environ, "PYTHONPATH": folder, "NO_PROXY": "*", "PYTHONDONTWRITEBYTECODE": "1"}
        self.lines = []
        self.process = subprocess.Popen(
            [sys.executable, SCRIPT, "--http", f"http://{server.http}", "--room", str(number), "--win", str(win)], env=environment,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.reader = threading.Thread(target=lambda: self.lines.extend(line.rstrip("\n") for line in iter(self.process.stdout.readline, "")), daemon=True)
        self.reader.start()

    def says(self, text, patience=30):
        """Waits for a line with this text."""
        try:
            wait_for(f"the machine to say {text!r}", lambda: any(text in line for line in self.lines), patience)
        except TimeoutError as error:
            raise AssertionError(f"{error}; it said {self.lines[-12:]}") from None

    def __enter__(self):
        self.says("connected")
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.reader.join(5)
        self.process.stdout.close()


class Camera(Device):
    """A picture of one colour at the address that host/query gave."""

    def __init__(self, server, url, colour):
        place, _, name = url.removeprefix("rtmp://").partition("/")
        super().__init__(server, name, source=f"color=c={colour}:size=160x120:rate=10", to=place,
                         video=["-c:v", "libx264", "-preset", "ultrafast", "-tune", "zerolatency", "-g", "10", "-pix_fmt", "yuv420p"])


class Player:
    """A person at the page /demo/machine, in a browser context of its own."""

    def __init__(self, browser, server, number, can_queue=True, **looks):
        self.server, self.number = server, number
        self.page = browser.page(**looks)
        self.page.open(f"http://{server.http}/demo/machine#{number}")
        self.page.wait(f"Boolean(document.querySelector('#queue')?.offsetParent) && document.querySelector('#queue').disabled === {json.dumps(not can_queue)}",
                       "the room with its queue")
        self.name = self.page.run("document.querySelector('#status').textContent").split("You are ")[-1].rstrip(".")
        self.accid = self.page.run("sessionStorage.getItem('sid')")

    def sees(self, text, where="#turn", patience=30):
        self.page.wait(f"(() => {{ const e = document.querySelector({json.dumps(where)}); return e && e.offsetParent !== null && e.textContent.includes({json.dumps(text)}); }})()",
                       f"{text!r} in {where}", patience)

    def press(self, selector, patience=30):
        self.page.wait(f"(() => {{ const e = document.querySelector({json.dumps(selector)}); if (!e || e.disabled || e.offsetParent === null) return false; e.click(); return true; }})()",
                       f"{selector} to press", patience)

    def is_invited(self, patience=30):
        self.page.wait("document.querySelector('#invite').open", "the invitation", patience)

    def key(self, name, is_down):
        code = {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, " ": 32}[name]
        self.page.send("Input.dispatchKeyEvent", type="keyDown" if is_down else "keyUp", key=name, code="Space" if name == " " else name, windowsVirtualKeyCode=code)

    def mouse(self, selector, kind):
        place = self.page.run(f"(() => {{ const r = document.querySelector({json.dumps(selector)}).getBoundingClientRect(); return {{ x: r.x + r.width / 2, y: r.y + r.height / 2 }}; }})()")
        self.page.send("Input.dispatchMouseEvent", type=kind, button="left", clickCount=1, **place)

    def colour(self):
        """Of the middle of the picture, as it is on the screen."""
        clip = self.page.run("(() => { scrollTo(0, 0); const r = document.querySelector('#video').getBoundingClientRect();"
                             " return { x: r.x + r.width / 2 - 10, y: r.y + r.height / 2 - 10, width: 20, height: 20 }; })()")
        return pixels.Pixels(self.page.picture(clip)).middle

    def sees_colour(self, wanted, patience=40):
        seen = []

        def shows():
            seen.append(self.colour())
            return pixels.is_near(seen[-1], wanted)

        try:
            wait_for("the picture", shows, patience)
        except TimeoutError:
            raise AssertionError(f"the picture is {seen[-1]}, not {wanted}: {self.page.text()[:300]}") from None

    def keep(self, name):
        if not self.server.keep:
            return
        os.makedirs(self.server.keep, exist_ok=True)
        with open(os.path.join(self.server.keep, f"{name}.png"), "wb") as file:
            file.write(self.page.picture())

    def close(self):
        """Closes the page, as a person does who has had enough."""
        try:
            self.page.send("Page.close")
        except BrowserError:
            # It may be gone before it answers.
            pass
