"""Actions that the other cases do not press: on the second stream of a room, on people who talk, viewers, tokens and webhooks; charts by keys."""
import contextlib
import http.server
import json
import threading
import urllib.error
import urllib.request

from cases_access import fill
from looks import ask, case, opened, told, visit
from server import Device, wait_for


def row(text):
    """The row of a table with this text."""
    return f"[...document.querySelectorAll('tr')].find((each) => each.innerText.includes({json.dumps(text)}))"


def press(page, text, name):
    page.wait(f"Boolean({row(text)})", f"the row of {text}")
    page.click(name, within=row(text))


def confirm(page, name):
    page.click(name, within="document.querySelector('dialog[open]')")


@case(expected=("WebSocket", "404", "503"))
def secondStream(server, browser, keep):
    """Buttons act on the chosen stream of a room, and the wall shows the worst one."""
    server.api("rooms", {"roomId": "duo", "slots": 2})
    with Device(server, "live/duo"), Device(server, "live/duo-2", extra=["-g", "1000", "-keyint_min", "1000"]):
        wait_for("both pushes", lambda: server.is_live("duo") and sum(each["isActive"] for each in server.api("rooms/duo")["streams"]) == 2)
        page = opened(server, browser)
        tile = "document.querySelector(\"a[href='#/rooms/duo']\")"
        page.wait(f"{tile}?.innerText.includes('without a keyframe')", "the second stream's ill on the tile")
        visit(page, "#/rooms/duo")
        page.wait("Boolean(document.querySelector('.head select'))", "the choice of streams")
        page.run("(() => { const s = document.querySelector('.head select'); s.value = '2'; s.dispatchEvent(new Event('change')); })()")
        page.wait("document.querySelector('.head select').value === '2'", "the second one")
        keep(page)
        ask(page, "Drop the push")
        wait_for("its end", lambda: [each["isActive"] for each in server.api("rooms/duo")["streams"]] == [True, False])
        offered = "[...document.querySelectorAll('.head button')].some((each) => each.textContent === 'Drop the push')"
        page.wait(f"!{offered}", "that there is nothing more to drop")
        page.run("(() => { const s = document.querySelector('.head select'); s.value = '1'; s.dispatchEvent(new Event('change')); })()")
        page.wait(offered, "the first one, which goes on")


@case(expected=("WebSocket", "404"))
def floorAndPeople(server, browser, keep):
    """The floor is granted and taken back, a talker kicked, a viewer ended: each is told."""
    with Device(server, "live/den"):
        wait_for("the room", lambda: server.is_live("den"))
        server.api("rooms/den/talk", {"mode": "ptt"}, "PATCH")
        with contextlib.ExitStack() as talkers:

            def holders():
                return [each["userId"] for each in server.api("rooms/den/talk")["members"] if each["hasFloor"]]

            # Publishing asks for the floor: the first has it, for thirty seconds.
            talkers.enter_context(Device(server, "talk/den/ben", audio="sine=frequency=1000"))
            wait_for("the floor of the first", lambda: holders() == ["ben"])
            talkers.enter_context(Device(server, "talk/den/ann", audio="sine=frequency=440"))
            wait_for("both talkers", lambda: len(server.api("rooms/den/talk")["members"]) == 2)
            page = opened(server, browser)
            visit(page, "#/rooms/den")
            press(page, "ann", "Grant the floor")
            wait_for("the floor", lambda: holders() == ["ann"])
            page.wait(f"{row('ann (holder)')} !== undefined", "who holds it")
            press(page, "ben", "Grant the floor")
            wait_for("the floor handed over", lambda: holders() == ["ben"])
            keep(page)
            press(page, "ben", "Take the floor back")
            wait_for("nobody's floor", lambda: not holders())
            told(page, "Done.")
            press(page, "ben", "Kick")
            confirm(page, "Kick")
            told(page, "Kicked.")
            wait_for("ben to be gone", lambda: [each["userId"] for each in server.api("rooms/den/talk")["members"]] == ["ann"])
        request = urllib.request.Request(f"http://{server.http}/live/den.flv", headers={"User-Agent": "somebody"})
        with urllib.request.urlopen(request, timeout=30) as answer:
            ended = []

            def watch():
                try:
                    while answer.read(1 << 14):
                        pass
                except (OSError, ValueError):
                    pass
                ended.append(True)

            threading.Thread(target=watch, daemon=True).start()
            press(page, "somebody", "End")
            confirm(page, "End")
            wait_for("the viewer's end", lambda: ended)
        acts = [(line["operation"], line["via"]) for line in server.api("audit?limit=50")["list"]]
        assert all((name, "console") in acts for name in ("changeFloor", "kickTalker", "endSession")), acts


@case(settings={"EARSHOT_OUTBOUND_ALLOW_PRIVATE": "127.0.0.1"})
def tokensAndTargets(server, browser, keep):
    """A token is revoked; a target is tested, paused, resumed, sent what failed, and removed."""
    heard = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            heard.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_):
            pass

    secret = server.api("tokens", {"name": "old laptop", "role": "ops"})["secret"]
    page = opened(server, browser)
    visit(page, "#/tokens")
    press(page, "old laptop", "Revoke")
    confirm(page, "Revoke")
    told(page, "Revoked.")
    page.wait(f"{row('old laptop')}?.innerText.includes('revoked')", "word of it")
    try:
        urllib.request.urlopen(urllib.request.Request(f"http://{server.http}/api/v1/rooms", headers={"Authorization": f"Bearer {secret}"}), timeout=20)
        raise AssertionError("the revoked token opens the API")
    except urllib.error.HTTPError as error:
        assert error.code == 401
    target = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=target.serve_forever, daemon=True).start()
    try:
        server.api("webhooks", {"name": "shop", "url": f"http://127.0.0.1:{target.server_address[1]}/hook"})
        visit(page, "#/webhooks")
        page.wait(f"{row('shop')}?.innerText.includes('nothing sent since the start')", "that nothing is known of it")
        press(page, "shop", "Test")
        told(page, "The target answered HTTP 204.")
        page.wait(f"/Test at .*The target answered HTTP 204/.test({row('shop')}?.innerText)", "the outcome in its row")
        assert len(heard) == 1, heard
        press(page, "shop", "Pause")
        wait_for("the pause", lambda: server.api("webhooks")["list"][0]["isPaused"])
        page.wait(f"{row('shop')}?.innerText.includes('Paused')", "the state")
        server.api("rooms", {"roomId": "held"})
        keep(page)
        press(page, "shop", "Resume")
        wait_for("what was held", lambda: any("held" in json.dumps(each) for each in heard))
        page.wait(f"/\\bgood\\b/.test({row('shop')}?.innerText)", "the good state")
        press(page, "shop", "Send again")
        page.wait("document.getElementById('notice').textContent.startsWith('No delivery to this target was given up.')", "that none had failed")
        press(page, "shop", "Remove")
        confirm(page, "Remove")
        told(page, "Removed.")
        wait_for("no target", lambda: not server.api("webhooks")["list"])
    finally:
        target.shutdown()


@case(expected=("WebSocket", "404"))
def forOBSAndCharts(server, browser, keep):
    """The two fields of OBS make up the push address; a chart tells its values by keys and by the pointer."""
    server.api("rooms", {"roomId": "porch"})
    page = opened(server, browser)
    visit(page, "#/rooms/porch")
    page.click("Show the push address")
    fields = json.loads(page.wait("""(() => { const all = [...document.querySelectorAll('dt')].filter((each) => ['Server', 'Stream key'].includes(each.textContent));
        return all.length === 2 ? JSON.stringify(all.map((each) => each.nextElementSibling.querySelector('code').textContent)) : ''; })()""", "the fields"))
    keep(page)
    place, name = fields
    assert place == f"rtmp://{server.rtmp}/live" and name.startswith("porch?txSecret="), (place, name[:20])
    with Device(server, f"live/{name}"):
        wait_for("the push by these", lambda: server.is_live("porch"))
        chart = "document.querySelector('figure.chart-box svg')"
        page.wait(f"Boolean({chart})", "a chart")
        page.wait(f"""(() => {{ {chart}.focus(); {chart}.dispatchEvent(new KeyboardEvent('keydown', {{ key: 'End', bubbles: true }}));
            return {chart}.closest('figure').querySelector('[aria-live=polite]')?.textContent.includes(' · '); }})()""", "a value and its time by the keyboard")
        page.run(f"{chart}.dispatchEvent(new PointerEvent('pointerleave'))")
        assert " · " not in page.run(f"{chart}.closest('figure').querySelector('[aria-live]').textContent")
        page.run(f"(() => {{ const b = {chart}.getBoundingClientRect(); {chart}.dispatchEvent(new PointerEvent('pointermove', {{ clientX: b.x + b.width / 2, clientY: b.y + 9 }})); }})()")
        assert " · " in page.run(f"{chart}.closest('figure').querySelector('[aria-live]').textContent"), "the value under the pointer"
