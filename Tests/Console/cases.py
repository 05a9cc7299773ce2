"""Logging in, the wall, a room's page and what can be done there. Each case has a server and a browser of its own; `keep` takes a screenshot for people."""
import json
import signal
import time
import urllib.error

from looks import BLUE, GREEN, RED, case, opened, see
from server import Device, wait_for


@case(expected=("401", "429"))
def login(server, browser, keep):
    page = browser.page(f"http://{server.http}/")
    page.wait("Boolean(document.querySelector('#token'))", "the login")
    keep(page)
    page.run("document.querySelector('#token').value = 'earshot_wrong'")
    page.click("Log in")
    page.wait("document.querySelector('[role=alert]').textContent.includes('unknown or revoked')", "the refusal")
    page.run(f"document.querySelector('#token').value = {json.dumps(server.token)}")
    page.click("Log in")
    page.wait("document.body.innerText.includes('Nobody has pushed a stream yet')", "the empty wall")
    assert page.run("document.cookie") == "", "a script can read the cookie"
    assert server.token not in page.run("JSON.stringify(localStorage) + JSON.stringify(sessionStorage) + location.href")
    # A reload stays logged in; logging out does not.
    page.send("Page.reload")
    page.wait("Boolean(document.querySelector('header.bar'))", "the console after a reload")
    page.click("Log out")
    page.wait("Boolean(document.querySelector('#token'))", "the login again")


@case()
def wall(server, browser, keep):
    with Device(server, "live/red"), Device(server, "live/blue", "color=c=blue:size=320x180:rate=25"):
        wait_for("both rooms", lambda: server.is_live("red") and server.is_live("blue"))
        server.api("rooms/red", {"title": "<img src=x onerror=document.title='pwned'>"}, "PATCH")
        page = opened(server, browser)
        see(page, "a[href='#/rooms/red'] img", RED)
        see(page, "a[href='#/rooms/blue'] img", BLUE)
        assert "<img src=x" in page.text(), "a title is shown as it is"
        assert page.run("document.title") != "pwned" and page.run("document.querySelectorAll('img[src=x]').length") == 0
        page.wait("document.querySelector(\"a[href='#/rooms/red'] .facts\").textContent.includes('kbit/s')", "the bit rate")
        keep(page)
        # Another picture from the same device, without anybody touching the page.
    with Device(server, "live/red", "color=c=green:size=320x180:rate=25"):
        see(page, "a[href='#/rooms/red'] img", GREEN)
        # The search narrows the wall.
        page.run("(() => { const s = document.querySelector('#search'); s.value = 'nothing like it'; s.dispatchEvent(new Event('input')); })()")
        page.wait("document.body.innerText.includes('No room fits')", "an empty result")


@case()
def preview(server, browser, keep):
    with Device(server, "live/cam", audio="sine=frequency=440"):
        wait_for("the room", lambda: server.is_live("cam"))
        page = opened(server, browser)
        page.run("location.hash = '#/rooms/cam'")
        page.wait("document.querySelector('#preview')?.currentTime > 0 && !document.querySelector('#preview').paused", "the preview to play")
        see(page, "#preview", RED)
        first = page.run("document.querySelector('#preview').currentTime")
        page.wait(f"document.querySelector('#preview').currentTime > {first} + 2", "the preview to go on")
        page.wait("/Player buffer [0-9.]+ m?s/.test(document.querySelector('#delay').textContent)", "the delay")
        page.wait("document.querySelectorAll('.chart .line').length >= 3", "the charts")
        page.wait("document.body.innerText.includes('The preview above is not counted.')", "that the console itself is no viewer")
        page.run("document.querySelector('.chart').focus()")
        page.run("document.querySelector('.chart').dispatchEvent(new KeyboardEvent('keydown', {key: 'Home', bubbles: true}))")
        page.wait("document.querySelector('figcaption b').textContent.includes('·')", "a value of the chart by keyboard")
        keep(page)
    # The stream comes back as another one: other size, no sound.
    with Device(server, "live/cam", "color=c=blue:size=640x360:rate=15"):
        see(page, "#preview", BLUE)
        page.run("(() => { const s = document.querySelector('select[aria-label=Charts]'); s.value = 'hours'; s.dispatchEvent(new Event('change')); })()")
        for name in ("Bit rate", "Frames per second", "Arrival jitter", "Keyframe interval", "Viewers"):
            page.wait(f"[...document.querySelectorAll('.chart-box')].some((e) => !e.hidden && e.innerText.startsWith({name!r}) && /[0-9]/.test(e.querySelector('b').textContent))",
                      f"{name} of the last hours")
        keep(page, "hours")


# A preview that was about to begin is refused, or ends, with the room that is forbidden and deleted.
@case(expected=("404", "WebSocket", "403 (Forbidden)", "503 (Service Unavailable)"))
def actions(server, browser, keep):
    with Device(server, "live/cam") as device:
        wait_for("the room", lambda: server.is_live("cam"))
        page = opened(server, browser)
        page.run("location.hash = '#/rooms/cam'")
        page.click("Forbid")
        page.wait("Boolean(document.querySelector('dialog[open]'))", "the question")
        page.run("document.querySelector('dialog [name=reason]').value = 'a test'")
        keep(page)
        page.click("Forbid", within="document.querySelector('dialog')")
        wait_for("the push to be cut", lambda: not device.is_running)
        page.wait("document.querySelector('.head').innerText.includes('forbidden')", "the new state")
        room = server.api("rooms/cam")
        assert room["forbidReason"] == "a test" and room["state"] == "forbidden", room
    page.click("Allow again")
    page.click("Allow again", within="document.querySelector('dialog')")
    wait_for("the room to be free", lambda: server.api("rooms/cam")["state"] == "created")
    page.click("Show the push address")
    page.wait("document.body.innerText.includes('txSecret') && document.body.innerText.includes('works on the server itself only')", "the address, and who can use it")
    assert not page.run("Boolean(document.querySelector('.qr'))"), "a code that leads a phone to itself"
    page.click("End the room…")
    page.click("Delete room")
    page.click("Delete room", within="document.querySelector('dialog')")

    def is_gone():
        try:
            server.api("rooms/cam")
        except urllib.error.HTTPError as error:
            return error.code == 404
        return False

    wait_for("the room to be gone", is_gone)


@case()
def talk(server, browser, keep):
    with Device(server, "live/den"):
        wait_for("the room", lambda: server.is_live("den"))
        with Device(server, "talk/den/ann", audio="sine=frequency=440"):
            page = opened(server, browser)
            page.run("location.hash = '#/rooms/den'")
            page.wait("document.querySelector('meter')?.value > -50", "a level that moves")
            keep(page)
            page.click("Mute")
            wait_for("the mute", lambda: server.api("rooms/den/talk")["members"][0]["muted"])
            page.click("Unmute")
            wait_for("the sound", lambda: not server.api("rooms/den/talk")["members"][0]["muted"])


@case()
def roles(server, browser, keep):
    """Actions that a role may not do are not offered."""
    secret = server.api("tokens", {"name": "desk", "role": "backend"})["secret"]
    server.api("rooms", {"roomId": "den"})
    page = browser.page(f"http://{server.http}/")
    page.wait("Boolean(document.querySelector('#token'))", "the login")
    browser.problems.clear()
    page.run(f"document.querySelector('#token').value = {json.dumps(secret)}")
    page.click("Log in")
    page.wait("Boolean(document.querySelector('header.bar'))", "the console")
    page.run("location.hash = '#/rooms/den'")
    page.click("End the room…")
    page.wait("document.querySelector('.head')?.innerText.includes('Close room')", "what an app may do")
    words = page.run("document.querySelector('.head').innerText")
    assert "Forbid" not in words and "Delete room" not in words and "Expire" not in words, words
    page.run("location.hash = '#/tokens'")
    page.wait("document.body.innerText.includes('This needs the role admin')", "why nothing is shown")
    keep(page)
    # The wall, too, asked only what it may: not how streams do.
    asked = json.loads(page.run("JSON.stringify(performance.getEntriesByType('resource').map((each) => new URL(each.name).pathname))"))
    assert "/api/v1/rooms" in asked and "/api/v1/streams" not in asked, asked


@case(expected=("ERR_CONNECTION", "WebSocket", "Failed to load"))
def restart(server, browser, keep):
    with Device(server, "live/cam"):
        wait_for("the room", lambda: server.is_live("cam"))
        page = opened(server, browser)
        page.wait("Boolean(document.querySelector(\"a[href='#/rooms/cam']\"))", "the room")
    server.stop(signal.SIGKILL)
    said = "document.querySelector('.outage').innerText"
    page.wait(f"{said}.includes('What is shown is from then') && document.querySelector('main').matches('.stale')", "old figures to look old")
    assert page.run("document.querySelector('#notice').textContent") == "", "the same in a notice"
    keep(page)
    # A page that is opened now has nothing old to show, and no other pages.
    page.run("location.hash = '#/rooms?state='")
    page.wait(f"{said}.includes('Nothing can be shown until it answers') && document.querySelector('.pages').hidden", "word of the empty page")
    assert page.run("document.querySelector('#notice').textContent") == "", "the same in a notice"
    keep(page, "restart-empty")
    server.start()
    page.wait("document.querySelector('.outage').hidden && !document.querySelector('main').matches('.stale')", "fresh figures")
    with Device(server, "live/other", "color=c=blue:size=320x180:rate=25"):
        page.wait("Boolean(document.querySelector(\"a[href='#/rooms/other']\"))", "a room of the new server, without a login")


@case()
def languages(server, browser, keep):
    with Device(server, "live/cam"):
        wait_for("the room", lambda: server.is_live("cam"))
        page = opened(server, browser)
        page.run("(() => { const s = document.querySelector('#language'); s.value = 'zh'; s.dispatchEvent(new Event('change')); })()")
        page.wait("document.body.innerText.includes('直播中') && document.documentElement.lang === 'zh-Hans'", "Chinese")
        see(page, "a[href='#/rooms/cam'] img", RED)
        keep(page)


@case()
def phone(server, browser, keep):
    with Device(server, "live/cam"):
        wait_for("the room", lambda: server.is_live("cam"))
        page = opened(server, browser, width=375, height=740, is_phone=True, is_dark=True)
        assert page.run("document.documentElement.dataset.theme") == "dark"
        see(page, "a[href='#/rooms/cam'] img", RED)
        for address in ("#/rooms", "#/rooms/cam", "#/server", "#/events", "#/webhooks", "#/tokens", "#/audit"):
            page.run(f"location.hash = '{address}'")
            page.wait("document.querySelector('main').innerText.length > 20", address)
            time.sleep(0.5)
            wide = page.run("document.documentElement.scrollWidth")
            assert wide <= 375, f"{address} is {wide} pixels wide"
            keep(page, f"phone-{address.strip('#/').replace('/', '-')}")
        # The longest dialogs: everything of them can be reached.
        for address, button in (("#/rooms/cam", "Forbid"), ("#/webhooks", "Add target"), ("#/tokens", "New token")):
            page.run(f"location.hash = '{address}'")
            page.click(button)
            page.wait("Boolean(document.querySelector('dialog[open]'))", f"the dialog of {button}")
            box = json.loads(page.run("(() => { const b = document.querySelector('dialog[open]').getBoundingClientRect(); return JSON.stringify([b.left, b.top, b.right, b.bottom]); })()"))
            assert box[0] >= 0 and box[1] >= 0 and box[2] <= 375 and box[3] <= 740, (button, box)
            last = "[...document.querySelectorAll('dialog[open] button')].at(-1)"
            page.run(f"{last}.scrollIntoView()")
            seen = json.loads(page.run(f"(() => {{ const b = {last}.getBoundingClientRect(); return JSON.stringify([b.top, b.bottom]); }})()"))
            assert 0 <= seen[0] and seen[1] <= 740, (button, seen)
            keep(page, f"phone-dialog-{button.split()[0].lower()}")
            page.click("Cancel", within="document.querySelector('dialog')")
            page.wait("!document.querySelector('dialog[open]')", f"the end of the dialog of {button}")


@case()
def keyboard(server, browser, keep):
    """Everything that a mouse reaches has a name, and the keyboard reaches it."""
    with Device(server, "live/cam"):
        wait_for("the room", lambda: server.is_live("cam"))
        page = opened(server, browser)
        page.wait("Boolean(document.querySelector(\"a[href='#/rooms/cam']\"))", "the room")
        page.run("document.activeElement?.blur()")
        reached = []
        for _ in range(25):
            for kind in ("keyDown", "keyUp"):
                page.send("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9)
            reached.append(page.run("document.activeElement.getAttribute('href') ?? document.activeElement.id ?? ''"))
        assert "#/rooms/cam" in reached and "#/server" in reached and "search" in reached, reached
        nameless = page.run("""[...document.querySelectorAll('a, button, input, select, meter, img')].filter((e) => !e.hidden)
            .filter((e) => !(e.textContent.trim() || e.ariaLabel || e.title || e.labels?.length || e.getAttribute('alt') !== null)).map((e) => e.outerHTML.slice(0, 80)).join()""")
        assert nameless == "", nameless
