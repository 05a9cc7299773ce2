"""What an operator sees of the server's own state, and how pages treat whoever uses them."""
import json
import shutil
import time

from cases_access import fill
from looks import case, opened, visit
from peers import SlowViewer
from server import Device, wait_for

# The disk of the tests has less than twice these bytes free.
NEARLY = str(int(shutil.disk_usage("/").free * 0.7))
ALARMS = "document.querySelector('.alarms').innerText"


def metrics(page, change):
    """Changes what the page reads of the server's metrics from now on: `change` is an expression of `text`."""
    page.run(f"""(() => {{ const real = window.realFetch ??= fetch; window.fetch = async (address, ...more) => {{
        const answer = await real(address, ...more);
        if (!String(address).includes('/metrics')) return answer;
        const text = await answer.text();
        return new Response({change}, {{ status: answer.status }});
    }}; }})()""")


def sample(name, value):
    return f".replace(/^{name} .*$/m, '{name} {value}')"


@case(settings={"EARSHOT_DATA_MIN_FREE": NEARLY})
def alarms(server, browser, keep):
    """What the server needs help with is told on every page, in words and units, and goes with its cause."""
    page = opened(server, browser)
    page.wait(f"/The disk of the data directory is nearly full: [0-9.]+ [GT]B are left. Below [0-9.]+ [GT]B no new push or room begins/.test({ALARMS})", "the disk")
    assert "limits.memory" not in page.run(ALARMS), page.run(ALARMS)
    ill = sample("earshot_memory_used_bytes", 95_000_000_000) + sample("earshot_memory_limit_bytes", 100_000_000_000) + sample("earshot_store_failing", 1) \
        + sample("earshot_store_waiting_facts", 12) + sample("earshot_ready", "0\\nearshot_certificate_expires_in_seconds 259200")
    metrics(page, "text" + ill)
    for address in ("#/rooms", "#/server", "#/events", "#/apps", "#/webhooks", "#/tokens", "#/audit", "#/settings"):
        visit(page, address)
        page.wait(f"{ALARMS}.includes('95.0 GB of 100 GB (limits.memory)')", f"the memory on {address}")
        assert page.run(f"{ALARMS}.includes('The TLS certificate ends in 3 d 0 h')"), page.run(ALARMS)
    worst = page.run("[...document.querySelectorAll('.alarms li')].map((each) => each.className + each.innerText)")
    assert worst[0].startswith("badThe database of the rooms cannot be written") and "Changes that wait: 12." in worst[0], worst
    keep(page)
    page.size(375, 740, True)
    visit(page, "#/rooms")
    time.sleep(0.5)
    assert page.run("document.documentElement.scrollWidth") <= 375
    keep(page, "alarms-phone")
    metrics(page, "text" + sample("earshot_store_min_free_bytes", 1))
    page.wait("document.querySelector('.alarms').hidden", "the end of all")


@case()
def worstFirst(server, browser, keep):
    """The wall begins with what is worst, says as many as it shows, cuts advice to two lines, and tells live from bad by its colour."""
    with Device(server, "live/well"), Device(server, "live/rare", extra=["-g", "1000", "-keyint_min", "1000"]), Device(server, "live/other"):
        server.api("rooms", {"roomId": "pair", "slots": 2})
        names = [slot["name"] for slot in server.api("rooms/pair")["streams"]]
        with Device(server, f"live/{names[0]}"), Device(server, f"live/{names[1]}"):
            page = opened(server, browser)
            page.wait("document.querySelector('.wall a')?.hash === '#/rooms/rare' && document.querySelector('.wall a').matches('.degraded')", "the worst as the first")
            assert page.run("document.querySelector('select[name=sort]').value") == "verdict"
            page.wait("document.querySelectorAll('.wall a').length === 4 && document.querySelector('[role=status]').textContent === '4 live'", "a room of two streams counted once")
            why = "document.querySelector('.wall a .why')"
            assert page.run(f"{why}.clientHeight < parseFloat(getComputedStyle({why}).fontSize) * 1.5 * 2 + 4 && {why}.title === {why}.textContent"), "two lines, whole in the title"
            colours = page.run("['live', 'bad', 'degraded', 'good'].map((name) => { const e = document.createElement('span'); e.className = 'badge ' + name; document.body.append(e); const c = getComputedStyle(e).backgroundColor; e.remove(); return c; })")
            red, green, blue = (int(part) for part in colours[0][4:-1].split(","))
            assert len(set(colours)) == 4 and blue > red + 60 and blue > green + 60, colours
            keep(page)
            visit(page, "#/rooms/rare")
            advice = "document.querySelector('.reasons .clamp')"
            page.wait(f"{advice}?.innerText.includes('keyframe')", "the advice")
            page.size(420, 800)
            page.wait(f"{advice}.scrollHeight > {advice}.clientHeight + 5", "more than two lines")
            page.run(f"{advice}.click()")
            page.wait(f"{advice}.scrollHeight <= {advice}.clientHeight + 1 && {advice}.getAttribute('aria-expanded') === 'true'", "all of it")
            # It stays open when the figures change.
            time.sleep(5)
            assert page.run(f"{advice}.getAttribute('aria-expanded')") == "true"


@case(expected=("404",))
def soundOnly(server, browser, keep):
    """A stream without a picture has no black box and no chart of pictures; the page's own preview is no viewer."""
    with Device(server, "live/voice", None, "sine=frequency=440"), Device(server, "live/cam", audio="sine"):
        wait_for("the rooms", lambda: server.is_live("voice") and server.is_live("cam"))
        page = opened(server, browser)
        tile = "document.querySelector(\"a[href='#/rooms/voice']\")"
        page.wait(f"{tile}?.innerText.includes('Sound only') && {tile}.matches('.sound')", "the tile")
        page.wait("Boolean(document.querySelector(\"a[href='#/rooms/cam'] img\"))", "the other's picture")
        height = "document.querySelector(\"a[href='#/rooms/{}'] .picture\").offsetHeight"
        assert page.run(height.format("voice")) * 1.5 < page.run(height.format("cam"))
        assert page.run(f"getComputedStyle({tile}.querySelector('.picture')).backgroundColor") != "rgb(11, 15, 19)"
        keep(page)
        visit(page, "#/rooms/voice")
        page.wait("document.querySelector('.player.sound') && document.body.innerText.includes('Sound only: this stream has no picture.')", "the player")
        page.wait("document.querySelector('#preview').currentTime > 1", "the sound")
        caption = "[...document.querySelectorAll('figcaption')].filter((each) => each.offsetParent).map((each) => each.firstChild.textContent).join()"
        page.wait(f"{caption}.includes('Bit rate')", "charts")
        assert page.run(caption) == "Bit rate,Arrival jitter,Viewers", page.run(caption)
        keep(page, "soundOnly-room")
        visit(page, "#/rooms/cam")
        page.wait("document.querySelector('#preview')?.currentTime > 1", "the preview")
        page.wait(f"{caption}.includes('Frames per second')", "the rate of pictures")
        viewers = "[...document.querySelectorAll('h2')].find((each) => each.textContent.startsWith('Viewers'))"
        page.wait("document.querySelector('dl.facts').innerText.includes('0 · Peak 1')", "nobody online, though the server counts the preview")
        page.wait(f"{viewers}?.textContent === 'Viewers (0)' && {viewers}.parentElement.innerText.includes('The preview above is not counted.')", "no viewer")
        with SlowViewer(server.http, "/live/cam.flv", 10_000_000, agent="somebody"):
            page.wait(f"{viewers}?.textContent === 'Viewers (1)' && {viewers}.parentElement.innerText.includes('somebody')", "the one viewer")
            chart = "[...document.querySelectorAll('figcaption')].find((each) => each.innerText.startsWith('Viewers')).lastChild.textContent"
            page.wait(f"{chart} === '1'", "one in the chart")


@case()
def lengthSoFar(server, browser, keep):
    """A recording that goes on says how long it is by now."""
    with Device(server, "live/cam"):
        wait_for("the room", lambda: server.is_live("cam"))
        server.api("rooms/cam/record", {"action": "start", "slot": 1})
        page = opened(server, browser)
        visit(page, "#/rooms/cam")
        cell = "[...document.querySelectorAll('td')].find((each) => / so far$/.test(each.innerText))?.innerText"
        first = page.wait(f"/^[1-9]/.test({cell}) && {cell}", "the length so far")
        page.wait(f"{cell} && {cell} !== {json.dumps(first)}", "it to grow")
        keep(page)


def press(page, key, code=0):
    for kind in ("keyDown", "keyUp"):
        page.send("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **({"text": "\r"} if key == "Enter" and kind == "keyDown" else {}))


@case(expected=("401",))
def dialogs(server, browser, keep):
    """Escape closes a dialog, and the focus is back where it was; whoever revokes the last token is told what it means."""
    page = opened(server, browser)
    server.api("rooms", {"roomId": "cam"})
    button = "[...document.querySelectorAll('main button')].find((each) => each.textContent.trim() === {})"

    def by_keyboard(text):
        found = button.format(json.dumps(text))
        page.wait(f"Boolean({found})", f"the button {text}")
        page.run(f"{found}.focus()")
        press(page, "Enter", 13)
        page.wait("Boolean(document.querySelector('dialog[open]'))", f"the dialog of {text}")
        return found

    for address, text in (("#/rooms", "Create room"), ("#/rooms/cam", "Forbid"), ("#/tokens", "New token"), ("#/webhooks", "Add target")):
        visit(page, address)
        found = by_keyboard(text)
        press(page, "Escape", 27)
        page.wait(f"!document.querySelector('dialog') && document.activeElement.textContent === {json.dumps(text)}", f"the focus on {text} again")
        assert page.run(f"{found} === document.activeElement")
        by_keyboard(text)
        page.click("Cancel", within="document.querySelector('dialog')")
        page.wait(f"!document.querySelector('dialog') && document.activeElement.textContent === {json.dumps(text)}", f"the focus after cancelling {text}")
    # A dialog that follows another one.
    visit(page, "#/tokens")
    by_keyboard("New token")
    fill(page, "name", "helper")
    page.click("Create", within="document.querySelector('dialog[open]')")
    page.wait("Boolean(document.querySelector('dialog[open] .secret'))", "the secret")
    press(page, "Escape", 27)
    page.wait("!document.querySelector('dialog') && document.activeElement.textContent === 'New token'", "the focus after both")
    # A menu, too.
    visit(page, "#/rooms/cam")
    page.click("End the room…")
    page.wait("Boolean(document.querySelector('details.more[open]'))", "the menu")
    page.run("document.querySelector('details.more button').focus()")
    press(page, "Escape", 27)
    page.wait("!document.querySelector('details.more[open]') && document.activeElement.textContent === 'End the room…'", "the closed menu")
    # The last token, which is this page's own.
    visit(page, "#/tokens")
    row = "[...document.querySelectorAll('tbody tr')].find((each) => each.innerText.startsWith({}))"
    page.click("Revoke", within=row.format("'helper'"))
    words = page.wait("document.querySelector('dialog[open]')?.innerText", "the question")
    assert "last token" not in words and "You are logged in" not in words, words
    page.click("Cancel", within="document.querySelector('dialog[open]')")
    page.click("Revoke", within=row.format("'first'"))
    words = page.wait("document.querySelector('dialog[open]')?.innerText", "the question")
    assert "You are logged in with this token" in words and "It is the last token for everything" in words and "earshot token create" in words, words
    keep(page)
    page.click("Cancel", within="document.querySelector('dialog[open]')")
    server.api("tokens", {"name": "second", "role": "admin"})
    visit(page, "#/rooms")
    visit(page, "#/tokens")
    page.click("Revoke", within=row.format("'first'"))
    words = page.wait("document.querySelector('dialog[open]')?.innerText", "the question")
    assert "You are logged in with this token" in words and "the last token" not in words, words


@case(settings={"EARSHOT_API_RATE_LIMIT": "100000"})
def serverFigures(server, browser, keep):
    """The server's page shows what comes in and goes out, the disk, and how both went since the console was opened; reasons have the whole width."""
    with Device(server, "live/cam", "testsrc2=size=320x180:rate=25"), SlowViewer(server.http, "/live/cam.flv", 10_000_000), \
            SlowViewer(server.http, "/live/cam.flv", 10_000_000):
        wait_for("the room", lambda: server.is_live("cam"))
        server.api("streams/live/none/forbid", {"seconds": 60})
        page = opened(server, browser)
        visit(page, "#/server")
        figure = "[...document.querySelectorAll('.figure')].find((each) => each.innerText.startsWith('{}'))?.querySelector('b').innerText"
        for name in ("Received", "Sent"):
            page.wait(f"/^[0-9.]+ [kM]bit/.test({figure.format(name)}) && !{figure.format(name)}.startsWith('0 ')", f"the rate of {name}")
        assert page.run(f"/^[0-9.]+ [GT]B$/.test({figure.format('Disk of the data')})"), page.run(figure.format("Disk of the data"))
        lines = "[...document.querySelectorAll('.charts path')].filter((each) => /L/.test(each.getAttribute('d'))).length"
        page.wait(f"{lines} === 6", "all charts with lines")
        server.api("streams/live/cam/drop", {})
        panel = "[...document.querySelectorAll('section')].find((each) => each.querySelector('h2')?.textContent === 'Why connections ended')"
        page.wait(f"{panel}.innerText.includes('its push was ended on request')", "the reason")
        assert page.run(f"{panel}.offsetWidth === {panel}.parentElement.offsetWidth"), "the whole width"
        keep(page)
        # The readings outlast the page.
        visit(page, "#/rooms")
        visit(page, "#/server")
        page.wait(f"{lines} === 6", "the lines again")


@case()
def phoneBar(server, browser, keep):
    """On a phone the navigation is one line that scrolls to the present page, and the charts' letters are as large as other text."""
    with Device(server, "live/cam"):
        wait_for("the room", lambda: server.is_live("cam"))
        page = opened(server, browser, width=375, height=740, is_phone=True)
        tops = "new Set([...document.querySelectorAll('header nav a')].map((each) => each.offsetTop)).size"
        assert page.run(tops) == 1, "one line"
        visit(page, "#/settings")
        page.wait("document.querySelector('header nav a[aria-current]')?.hash === '#/settings'", "the page")
        edges = json.loads(page.run("(() => { const b = document.querySelector('header nav a[aria-current]').getBoundingClientRect(); return JSON.stringify([b.left, b.right]); })()"))
        assert edges[0] >= 0 and edges[1] <= 375, edges
        keep(page, "phoneBar-settings")
        for address in ("#/rooms/cam", "#/server"):
            visit(page, address)
            size = "(() => { const e = [...document.querySelectorAll('.chart text')].find((each) => each.getBoundingClientRect().height > 0); return e ? e.getBoundingClientRect().height : 0; })()"
            page.wait(f"{size} >= 11", "letters that can be read")
            assert page.run("document.documentElement.scrollWidth") <= 375, address
            page.run("document.querySelector('.chart').scrollIntoView({ block: 'center' })")
            time.sleep(5)
            keep(page, f"phoneBar-{address.strip('#/').replace('/', '-')}")


@case(expected=("401",), settings={"EARSHOT_LIMITS_CONNECTIONS": "1234", "EARSHOT_CREDENTIALS_JWT_KEY": "a-secret-of-the-tests-that-nobody-may-see"})
def settings(server, browser, keep):
    """Every setting with its value and source, for administrators; secrets are never shown."""
    page = opened(server, browser)
    page.click("Settings", within="document.querySelector('header nav')")
    row = "[...document.querySelectorAll('tbody tr')].find((each) => each.cells[0].innerText === {})?.innerText"
    text = page.wait(row.format("'limits.connections'"), "a setting of the environment")
    assert "1234" in text and "environment" in text and "EARSHOT_LIMITS_CONNECTIONS" in text, text
    text = page.run(row.format("'rtmp.listen'"))
    assert "command line" in text and "--rtmp" in text, text
    text = page.run(row.format("'limits.connectionsPerAddress'"))
    assert "default" in text, text
    text = page.run(row.format("'credentials.jwtKey'"))
    assert "set, not shown" in text, text
    assert "nobody-may-see" not in page.run("document.documentElement.outerHTML"), "a secret on the page"
    assert "nobody-may-see" not in json.dumps(server.api("server/settings")), "a secret in the answer"
    keep(page)
    whole = page.run("document.querySelectorAll('tbody tr').length")
    page.run("document.querySelector('#own').click()")
    page.wait(f"document.querySelectorAll('tbody tr').length < {whole} / 4 && document.body.innerText.includes('limits.connections')", "only what is set")
    keep(page, "settings-own")
    page.run("(() => { const s = document.querySelector('#sought'); s.value = 'no such thing'; s.dispatchEvent(new Event('input')); })()")
    page.wait("document.body.innerText.includes('No setting fits.')", "an empty result")
    ops = server.api("tokens", {"name": "ops", "role": "ops"})["secret"]
    other = browser.page(f"http://{server.http}/")
    other.wait("Boolean(document.querySelector('#token'))", "the login")
    other.run(f"document.querySelector('#token').value = {json.dumps(ops)}")
    other.click("Log in")
    other.wait("Boolean(document.querySelector('header.bar'))", "the console")
    assert "Settings" not in other.run("document.querySelector('header nav').innerText"), "offered to the wrong role"
    visit(other, "#/settings")
    other.wait("document.querySelector('main').innerText.includes('This needs the role admin')", "why not")
