"""A headless Chromium, driven over its debugging pipe (Chrome DevTools Protocol): messages end with NUL, no WebSocket is needed."""
import base64
import json
import os
import subprocess
import threading
import time


class BrowserError(Exception):
    pass


class Browser:
    """A browser with a profile of its own in `folder`. Use as a context."""

    FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--mute-audio", "--hide-scrollbars", "--remote-debugging-pipe",
             "--autoplay-policy=no-user-gesture-required", "--disable-background-networking", "--disable-dev-shm-usage"]

    def __init__(self, folder, flags=()):
        """`flags`: more of Chromium's."""
        to_browser, self.writing = os.pipe()
        self.reading, from_browser = os.pipe()

        def descriptors():
            # The browser reads commands from 3 and writes to 4. The copies first: one of the pipes may be 3 or 4 itself.
            one, other = os.dup(to_browser), os.dup(from_browser)
            os.dup2(one, 3)
            os.dup2(other, 4)

        self.process = subprocess.Popen(
            ["chromium", *self.FLAGS, *flags, f"--user-data-dir={folder}/profile", "about:blank"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, preexec_fn=descriptors, close_fds=False)
        os.close(to_browser)
        os.close(from_browser)
        os.set_inheritable(self.writing, False)
        os.set_inheritable(self.reading, False)
        self.count = 0
        self.answers = {}
        self.problems = []
        self.changed = threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.writing)

    def _read(self):
        rest = b""
        while True:
            try:
                data = os.read(self.reading, 1 << 16)
            except OSError:
                return
            if not data:
                return
            *messages, rest = (rest + data).split(b"\0")
            for text in messages:
                message = json.loads(text)
                with self.changed:
                    if "id" in message:
                        self.answers[message["id"]] = message
                    elif message["method"] == "Runtime.exceptionThrown":
                        details = message["params"]["exceptionDetails"]
                        self.problems.append(details.get("exception", {}).get("description", details["text"]))
                    elif message["method"] == "Log.entryAdded":
                        entry = message["params"]["entry"]
                        if entry["level"] == "error":
                            self.problems.append(f"{entry['text']} {entry.get('url', '')}")
                    self.changed.notify_all()

    def send(self, method, session=None, patience=60, **params):
        with self.changed:
            self.count += 1
            number = self.count
        message = {"id": number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self.writing, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + patience
        with self.changed:
            while number not in self.answers:
                if not self.changed.wait(max(0, end - time.monotonic())):
                    raise BrowserError(f"the browser did not answer {method} within {patience} s")
            answer = self.answers.pop(number)
        if "error" in answer:
            raise BrowserError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def page(self, url="about:blank", width=1280, height=800, is_phone=False, is_dark=False, language=None, beside=None):
        """`beside`: a page whose cookies the new one shares."""
        return Page(self, url, width, height, is_phone, is_dark, language, beside)


class Page:
    """A tab."""

    def __init__(self, browser, url, width, height, is_phone, is_dark, language, beside):
        self.browser = browser
        self.context = beside.context if beside else browser.send("Target.createBrowserContext")["browserContextId"]
        # In a window of its own: a tab behind another one is hidden, and does not ask for anything.
        target = browser.send("Target.createTarget", url="about:blank", browserContextId=self.context, newWindow=True)["targetId"]
        self.session = browser.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(f"{domain}.enable")
        self.size(width, height, is_phone)
        self.scheme("dark" if is_dark else "light")
        if language:
            self.send("Emulation.setUserAgentOverride", userAgent="", acceptLanguage=language)
        if url != "about:blank":
            self.open(url)

    def send(self, method, **params):
        return self.browser.send(method, session=self.session, **params)

    def open(self, url):
        self.send("Page.navigate", url=url)

    def size(self, width, height, is_phone=False):
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=2 if is_phone else 1, mobile=is_phone)

    def scheme(self, name):
        self.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def run(self, script):
        """The value of an expression, which may be a promise."""
        answer = self.send("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True, userGesture=True)
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise BrowserError(f"{script[:200]}: {details.get('exception', {}).get('description', details['text'])}")
        return answer["result"].get("value")

    def wait(self, script, what, patience=60):
        """Until an expression is true; returns its value."""
        end = time.monotonic() + patience
        while time.monotonic() < end:
            try:
                value = self.run(script)
            except BrowserError:
                # Between two pages there is nothing to ask.
                value = None
            if value:
                return value
            time.sleep(0.1)
        raise BrowserError(f"waited {patience} s for {what}; the page shows: {self.text()[:600]}")

    def text(self):
        return self.run("document.body.innerText")

    def click(self, text, patience=60, within="document"):
        """Presses the button or link with this text."""
        self.wait(f"""(() => {{
            const found = [...{within}.querySelectorAll('button, a, summary')].find((each) => each.textContent.trim() === {json.dumps(text)} && !each.disabled && each.offsetParent !== null);
            found?.click();
            return Boolean(found);
        }})()""", f"the button {text!r}", patience)

    def picture(self, clip=None):
        """A PNG of what the page shows."""
        extra = {"clip": {**clip, "scale": 1}} if clip else {}
        return base64.b64decode(self.send("Page.captureScreenshot", format="png", **extra)["data"])
