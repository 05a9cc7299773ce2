"""Cases: everything that can be done with a room, each by its button."""
import signal
import tempfile
import time

from cases_access import fill
from looks import ask, case, opened, see, told, visit, RED
from server import Device, Server, wait_for


@case(expected=("WebSocket", "404", "503"))
def everyAction(server, browser, keep):
    """Create, renew, record, stop, snapshot, drop, expire: the server did it, and the page says so."""
    page = opened(server, browser)
    page.click("Create room")
    fill(page, "roomId", "porch")
    fill(page, "title", "The porch")
    page.click("Create", within="document.querySelector('dialog[open]')")
    page.wait("document.querySelector('.head h1')?.innerText === 'The porch'", "the new room's page")
    before = server.api("rooms/porch")["expiresAt"]
    page.click("Renew")
    fill(page, "seconds", "7200")
    page.click("Renew", within="document.querySelector('dialog[open]')")
    wait_for("the later end", lambda: server.api("rooms/porch")["expiresAt"] > before)
    with Device(server, "live/porch", audio="sine=frequency=440"):
        wait_for("the push", lambda: server.is_live("porch"))
        see(page, "#preview", RED)
        ask(page, "Record")
        wait_for("the recording", lambda: [each for each in server.api("recordings?roomId=porch")["list"] if each["state"] == "recording"])
        page.wait("document.body.innerText.includes('Recording began')", "word of it")
        time.sleep(2)
        ask(page, "Stop recording")
        wait_for("the file", lambda: [each for each in server.api("recordings?roomId=porch")["list"] if each["state"] == "finished"])
        row = "[...document.querySelectorAll('section')].find((each) => each.querySelector('h2')?.textContent === 'Recordings')"
        page.wait(f"{row}.innerText.includes('finished')", "the recording on the page")
        page.click("Play", within=row)
        page.wait("document.querySelector('dialog[open] video')?.videoWidth === 320", "the recorded picture")
        keep(page)
        page.click("Close", within="document.querySelector('dialog[open]')")
        size = page.run(f"fetch({row}.querySelector('a[download]').href).then((answer) => answer.blob()).then((blob) => blob.size)")
        assert size == server.api("recordings?roomId=porch")["list"][0]["bytes"], size
        opens = page.run("(() => { window.opened = []; window.open = (url) => { window.opened.push(url); }; return true; })()")
        assert opens
        page.click("Snapshot")
        page.wait("window.opened.length === 1", "the picture's address")
        assert page.run("fetch(window.opened[0]).then((answer) => answer.headers.get('Content-Type'))") == "image/jpeg"
        ask(page, "Drop the push")
        wait_for("the end of the push", lambda: not server.is_live("porch"))
        page.wait("document.body.innerText.includes('Push ended its push was ended on request')", "why, and nothing of why the room went live")
        # Times are times, sizes are sizes, and the recording was not stopped by the publisher.
        line = "[...document.querySelectorAll('.timeline li')].find((each) => each.innerText.includes('record.finished')).innerText"
        words = page.run(line)
        assert "Recording finished stopped on request" in words and "size " in words and words.count("ended") == 1, words
        assert " d " not in words and "number" not in words, words
        page.run("document.querySelector('.timeline').scrollIntoView({block: 'center'})")
        keep(page, "everyAction-timeline")
    page.click("Delete", within=row)
    page.click("Delete", within="document.querySelector('dialog[open]')")
    told(page, "Deleted.")
    wait_for("the file to go", lambda: not server.api("recordings?roomId=porch")["list"])
    page.click("End the room…")
    ask(page, "Expire")
    wait_for("the end", lambda: server.api("rooms/porch")["state"] == "expired")
    page.wait("document.querySelector('.head').innerText.includes('expired')", "the end on the page")


@case(expected=("WebSocket", "403"))
def previewOutlivesItsAddress(server, browser, keep):
    """An address is good for an hour, a page may stay open for a day: a player that comes back has a new one."""
    page = opened(server, browser)
    page.run("""(() => { const real = fetch; window.signed = 0;
        window.fetch = (address, ...more) => { const text = String(address); if (text.includes('/play-urls')) window.signed += 1; return real(text.replace('lifetime=3600', 'lifetime=2'), ...more); };
        return true; })()""")
    with Device(server, "live/cam"):
        wait_for("the push", lambda: server.is_live("cam"))
        visit(page, "#/rooms/cam")
        see(page, "#preview", RED)
        time.sleep(4)
        asked = page.run("window.signed")
        for session in server.api("sessions?stream=live/cam&role=player")["list"]:
            server.api(f"sessions/{session['sessionId']}", method="DELETE")
        page.wait(f"window.signed > {asked}", "a new address")
        page.wait("document.querySelector('.player p').textContent === '' && !document.querySelector('#preview').paused", "the picture to come back")
        begun = page.run("document.querySelector('#preview').currentTime")
        page.wait(f"document.querySelector('#preview').currentTime > {begun} + 1", "the picture to go on")
        keep(page)


@case()
def eventBeforeTheFeed(server, browser, keep):
    """Events between the page's load and the feed's start are shown."""
    page = opened(server, browser)
    server.api("rooms", {"roomId": "yard"})
    page.run("const go = new Promise((done) => { window.go = done; }), real = fetch; window.fetch = async (...all) => { if (String(all[0]).includes('/events/ticket')) await go; return real(...all); }; 0")
    visit(page, "#/rooms/yard")
    shown = "document.querySelector('.timeline')?.innerText"
    page.wait(f"{shown}.includes('Room created')", "the event before")
    server.api("rooms/yard/renew", {"seconds": 60})
    page.run("window.go()")
    page.wait(f"{shown}.includes('Room renewed')", "the event between", 20)


@case()
def openedAtItsRoom(server, browser, keep):
    """An address with a code may name the page that is shown: `make demo` prints such a one."""
    with Device(server, "live/demo"):
        wait_for("the push", lambda: server.is_live("demo"))
        page = browser.page(f"{server.console}&page=/rooms/demo")
        see(page, "#preview", RED)
        assert page.run("location.href").endswith("/#/rooms/demo"), page.run("location.href")


@case()
def refusedLately(server, browser, keep):
    """A device whose credential is wrong: its room says so, as does the server's page, in words and in Chinese."""
    page = opened(server, browser)
    server.api("rooms", {"roomId": "door"})
    for _ in range(2):
        with Device(server, "live/door?token=nonsense") as device:
            wait_for("the refusal", lambda: not device.is_running)
    visit(page, "#/rooms/door")
    panel = "[...document.querySelectorAll('section')].find((each) => ['Refused lately', '最近被拒绝'].includes(each.querySelector('h2')?.textContent))"
    page.wait(f"{panel}?.innerText.includes('its credential is wrong') && {panel}.innerText.includes('127.0.0.1')", "the reason in the room")
    cells = page.run(f"[...{panel}.querySelectorAll('tbody td')].map((each) => each.innerText)")
    assert cells[1] == "Push" and cells[-1] == "2", cells
    assert "nonsense" not in page.text(), "the credential is shown"
    keep(page)
    visit(page, "#/server")
    page.wait(f"{panel}?.innerText.includes('live/door')", "the stream on the server's page")
    keep(page, "refusedLately-server")
    page.run("(() => { const s = document.querySelector('#language'); s.value = 'zh'; s.dispatchEvent(new Event('change')); })()")
    page.wait(f"{panel}?.innerText.includes('推流') && {panel}.querySelector('h2').textContent === '最近被拒绝'", "Chinese")


@case(expected=("404", "503", "WebSocket"), settings={"EARSHOT_OUTBOUND_ALLOW_PRIVATE": "127.0.0.1"})
def links(server, browser, keep):
    """A room's links to another server, in words and in Chinese: which way, how they do, and why not; nothing of their credentials."""
    with tempfile.TemporaryDirectory() as folder, Server(server.binary, folder) as other, Device(server, "live/cam"):
        wait_for("the push", lambda: server.is_live("cam"))
        page = opened(server, browser)
        visit(page, "#/rooms/cam")
        panel = "[...document.querySelectorAll('section')].find((each) => ['Links', '转推与拉流'].includes(each.querySelector('h2')?.textContent))"
        see(page, "#preview", RED)
        assert not page.run(f"Boolean({panel})"), "a panel of links before there are any"
        other.api("rooms", {"roomId": "copy"})
        address = other.api("rooms/copy/push-url", {"slot": 1})["rtmp"]
        server.api("links", {"direction": "push", "app": "live", "name": "cam", "url": address})
        wait_for("the copy", lambda: other.is_live("copy"))
        page.wait(f"/^sent to.*rtmp:.*carries media running/s.test({panel}?.querySelector('tbody tr').innerText)", "the link that carries media")
        page.run(f"{panel}.scrollIntoView()")
        keep(page)
        # The other way, for a room of its own.
        server.api("rooms", {"roomId": "fetched"})
        server.api("links", {"direction": "pull", "app": "live", "name": "fetched", "url": f"rtmp://{other.rtmp}/live/nobody"})
        visit(page, "#/rooms/fetched")
        page.wait(f"/^fetched from/.test({panel}?.querySelector('tbody tr').innerText)", "the link that fetches")
        visit(page, "#/rooms/cam")
        other.stop(signal.SIGKILL)
        page.wait(f"{panel}?.innerText.includes('waits to try again') && {panel}.querySelector('.note').textContent.length > 5", "the broken link, and why")
        page.wait("/Link interrupted link.interrupted.*sent to/s.test(document.querySelector('.timeline').innerText)", "the line of the events, in words of its own")
        assert "txSecret" in address and "txSecret" not in page.text(), "the credential is shown"
        page.run(f"{panel}.scrollIntoView()")
        keep(page, "links-broken")
        page.run("(() => { const s = document.querySelector('#language'); s.value = 'zh'; s.dispatchEvent(new Event('change')); })()")
        page.wait(f"/推往.*等待重试/s.test({panel}?.innerText)", "Chinese")
        page.size(375, 740, True)
        assert page.run("document.documentElement.scrollWidth") <= 375, "too wide for a phone"
        page.run(f"{panel}.scrollIntoView()")
        keep(page, "links-phone")
