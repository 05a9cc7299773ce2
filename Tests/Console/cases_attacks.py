"""Markup in every text that a device or an app can set, and pages of other sites beside a console that is logged in."""
import contextlib
import http.client
import http.server
import json
import socket
import subprocess
import threading
import urllib.error
import urllib.parse

from looks import case, opened, visit
from server import Device, wait_for

# Quotes for attributes, an element that runs at once, and one that runs when it fails.
MARK = "\"'><img src=x onerror=\"window.ran=1\"><svg onload=window.ran=1>"
# In addresses and names of streams.
SHORT = "<img src=x onerror=ran=1>"


@contextlib.contextmanager
def plays(server, name, client):
    """A viewer over RTMP that names its program so."""
    process = subprocess.Popen(
        ["ffmpeg", "-nostdin", "-v", "quiet", "-rtmp_flashver", client, "-i", f"rtmp://{server.rtmp}/{name}", "-f", "null", "-"],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def asks(server, path, agent):
    """A viewer over HTTP that names its program so."""
    host, port = server.http.rsplit(":", 1)
    with socket.create_connection((host, int(port))) as viewer:
        viewer.sendall(f"GET {path} HTTP/1.1\r\nHost: {server.http}\r\nUser-Agent: {agent}\r\n\r\n".encode())

        def read():
            with contextlib.suppress(OSError):
                while viewer.recv(65536):
                    pass

        threading.Thread(target=read, daemon=True).start()
        yield
        viewer.shutdown(socket.SHUT_RDWR)


def refused(server, path, body):
    """Whether the API refuses a text that has markup in it."""
    try:
        server.api(path, body)
    except urllib.error.HTTPError as error:
        return error.code == 400
    return False


@case(expected=("404 (Not Found)", "400 (Bad Request)"), settings={"EARSHOT_OUTBOUND_ALLOW_PRIVATE": "127.0.0.0/8"})
def markup(server, browser, keep):
    # Ids have no room for markup; other texts are kept as they are.
    for body in ({"roomId": SHORT}, {"roomId": "r", "owner": SHORT}, {"roomId": "r", "deviceUid": SHORT}):
        assert refused(server, "rooms", body), body
    assert refused(server, "links", {"direction": "push", "app": "live", "name": "cam", "url": f"javascript:{SHORT}"})
    server.api("rooms", {"roomId": "cam", "title": MARK, "owner": "ann", "custom": {MARK: MARK}})
    server.api("rooms", {"roomId": "banned", "title": MARK})
    server.api("rooms/banned/forbid", {"reason": MARK, "seconds": 3600})
    server.api("tokens", {"name": MARK[:64], "role": "backend"})
    # Nobody listens there, so its deliveries fail.
    server.api("webhooks", {"name": MARK[:60], "url": f"https://127.0.0.1:9/?{urllib.parse.quote(SHORT)}"})
    server.api("links", {"direction": "push", "app": "live", "name": "cam", "url": f"rtmp://127.0.0.1:9/live/{urllib.parse.quote(SHORT)}"})
    server.api("streams/live/" + urllib.parse.quote(f"{SHORT}2", safe="") + "/forbid", {"reason": MARK, "seconds": 60})
    metadata = ["-metadata", f"title={MARK}", "-metadata", f"encoder={MARK}", "-metadata", f"{SHORT}={MARK}", "-rtmp_flashver", MARK]
    with contextlib.ExitStack() as peers:
        peers.enter_context(Device(server, "live/cam", audio="sine", extra=metadata))
        peers.enter_context(Device(server, "", extra=["-rtmp_app", "live", "-rtmp_playpath", SHORT]))
        wait_for("the rooms", lambda: server.is_live("cam") and len(server.api("rooms?state=live")["list"]) == 2)
        # The first talker's name is refused: it would be a user's id.
        peers.enter_context(Device(server, "", None, "sine", ["-rtmp_app", "talk", "-rtmp_playpath", f"cam/{SHORT}"]))
        peers.enter_context(Device(server, "talk/cam/bob", None, "sine", metadata))
        peers.enter_context(plays(server, "live/cam", MARK))
        peers.enter_context(asks(server, "/live/cam.flv", MARK))
        wait_for("the viewers", lambda: len(server.api("sessions?role=player&stream=live/cam")["list"]) >= 2)
        wait_for("the talker", lambda: server.api("rooms/cam/talk")["members"])
        server.api("rooms/cam/record", {"action": "start", "slot": 1})
        with contextlib.suppress(urllib.error.HTTPError):
            server.api("rooms/cam/members", {"userId": "eve", "nick": MARK})
        page = opened(server, browser)
        page.run("window.violations = []; document.addEventListener('securitypolicyviolation', (e) => violations.push(e.violatedDirective + e.sample))")

        def check(what, *shown):
            for text in shown:
                page.wait(f"document.body.innerText.includes({json.dumps(text)})", f"{text!r} as it is on {what}")
            seen = page.run("""JSON.stringify([window.ran ?? 0, document.querySelectorAll('[onerror], [onload], [src=x]').length, violations.length,
                [...document.querySelectorAll('[href^=javascript], [src^=javascript]')].length])""")
            assert seen == "[0,0,0,0]", (what, seen, page.run("violations.join()"))

        check("the wall", MARK)
        visit(page, "#/rooms/cam")
        page.wait("[...document.querySelectorAll('tbody tr')].length > 0", "the viewers")
        # The title, the publisher's program, and those of two viewers.
        page.wait(f"document.body.innerText.split({json.dumps(MARK)}).length >= 5", "the title and the programs' names")
        page.wait("document.body.innerText.includes('bob') && Boolean(document.querySelector('.timeline li'))", "the talker and the events")
        check("a room's page", MARK)
        keep(page)
        page.click("Trace", within="document.querySelector('dl.facts')")
        page.wait("document.querySelector('dialog[open] pre')?.textContent.includes('flashVer=')", "the trace")
        check("a trace")
        page.click("Close")
        other = next(room for room in server.api("rooms?state=live")["list"] if room["roomId"] != "cam")
        visit(page, f"#/rooms/{other['roomId']}")
        page.wait(f"document.querySelector('h1')?.textContent === {json.dumps(other['roomId'])}", "the room of the odd name")
        check("the room of a stream with markup in its name")
        visit(page, "#/rooms/banned")
        check("a forbidden room", MARK)
        visit(page, f"#/rooms/{urllib.parse.quote(SHORT, safe='')}")
        check("a room of the address alone", f"Room {SHORT} does not exist")
        visit(page, f"#/rooms?state=&q={urllib.parse.quote(SHORT, safe='')}&sort={urllib.parse.quote(SHORT, safe='')}")
        check("a search of the address alone", "Search")
        for address, shown in (("#/server", "Self-check"), ("#/events", "room.forbidden"), ("#/webhooks", MARK[:60]), ("#/tokens", MARK[:64]), ("#/audit", "<img src=x")):
            visit(page, address)
            check(address, shown)
            keep(page, f"markup-{address[2:]}")


class Site:
    """Another site: every path of it shows this page."""

    def __init__(self, text):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                body = text.encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


ATTACK = """<!doctype html><title>other site</title><body>
<iframe name=sink></iframe><iframe id=frame src="CONSOLE/" width=800 height=500></iframe><img id=picture src="CONSOLE/api/v1/rooms/cam/snapshot.jpg">
<script>
const api = 'CONSOLE/api/v1', done = [];
const note = (name, promise) => promise.then((answer) => done.push([name, answer.type, answer.status ?? 0]), () => done.push([name, 'failed', 0]));
async function all() {
  for (const mode of ['no-cors', 'cors']) {
    const send = (path, body, method = 'POST', headers = {}) => fetch(path, { method, mode, credentials: 'include', headers, body });
    await note('close ' + mode, send(api + '/rooms/cam/close', '{}'));
    await note('forbid ' + mode, send(api + '/rooms/cam/forbid', '{"seconds":3600}', 'POST', { 'Content-Type': 'text/plain' }));
    await note('drop ' + mode, send(api + '/streams/live/cam/drop'));
    await note('token ' + mode, send(api + '/tokens', '{"name":"thief","role":"admin"}', 'POST', mode === 'cors' ? { 'Content-Type': 'application/json' } : {}));
    await note('log out ' + mode, send('CONSOLE/console/logout', '{}'));
    await note('session ' + mode, send('CONSOLE/console/session', undefined, 'GET'));
    await note('rooms ' + mode, send(api + '/rooms', undefined, 'GET'));
  }
  await note('delete', fetch(api + '/rooms/cam', { method: 'DELETE', mode: 'cors', credentials: 'include' }));
  await note('own header', fetch(api + '/rooms/cam/close', { method: 'POST', mode: 'cors', credentials: 'include', headers: { 'X-Csrf-Token': 'guess' } }));
  await new Promise((next) => { const feed = new WebSocket('CONSOLE/events'.replace('http', 'ws')); feed.onopen = () => { done.push(['feed', 'open', 0]); next(); }; feed.onclose = () => { done.push(['feed', 'failed', 0]); next(); }; });
  for (const path of ['/rooms/cam/close', '/rooms/cam/expire', '/streams/live/cam/drop']) {
    const form = document.createElement('form');
    Object.assign(form, { method: 'post', action: api + path, target: 'sink', enctype: 'text/plain' });
    form.innerHTML = '<input name=\\'{"a":"\\' value=\\'"}\\'>';
    document.body.append(form);
    await new Promise((next) => { document.querySelector('[name=sink]').onload = next; form.submit(); });
    done.push(['form ' + path, 'sent', 0]);
  }
  window.done = done;
}
all();
</script>"""


# At the end the room is closed, and its preview ends.
@case(expected=("WebSocket", "404 (Not Found)", "410 (Gone)", "503 (Service Unavailable)"))
def other_sites(server, browser, keep):
    """A page of another site, and one of another port of the same address, whose requests carry the cookie."""
    with Device(server, "live/cam"):
        wait_for("the room", lambda: server.is_live("cam"))
        page = opened(server, browser)

        def state():
            room = server.api("rooms/cam")
            tokens = [token["name"] for token in server.api("tokens")["list"]]
            return room["state"], room["streams"][0]["sequence"], room["forbidReason"], tokens

        before, lines = state(), server.api("audit?limit=1000")["list"]
        with Site(ATTACK.replace("CONSOLE", f"http://{server.http}")) as site:
            for host in ("127.0.0.1", "localhost"):
                other = browser.page(f"http://{host}:{site.port}/", beside=page)
                told = other.wait("window.done && JSON.stringify(window.done)", "all attacks to be tried")
                done = {name: (kind, status) for name, kind, status in json.loads(told)}
                assert len(done) == 20, done
                # Requests sent blindly were answered, and their answers could not be read.
                assert done["close no-cors"] == ("opaque", 0) and done["rooms no-cors"] == ("opaque", 0), done
                for name, (kind, status) in done.items():
                    assert kind in ("opaque", "failed", "sent") or status in (401, 403), (host, name, kind, status)
                assert other.run("document.querySelector('#picture').naturalWidth") == 0, "a picture was shown to another site"
                assert any("frame-ancestors 'none'" in problem for problem in browser.problems), (host, browser.problems)
                # In a process of its own, or in that of the page around it: an error page and not the console.
                apart = [each["targetId"] for each in browser.send("Target.getTargets")["targetInfos"] if each["type"] == "iframe" and each["url"].endswith(f"{server.http}/")]
                for target in apart:
                    session = browser.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
                    shown = browser.send("Runtime.evaluate", session=session, expression="document.URL")["result"]["value"]
                    assert shown.startswith("chrome-error:"), (host, shown)
                frames = [each["frame"] for each in other.send("Page.getFrameTree")["frameTree"].get("childFrames", [])]
                within = [frame for frame in frames if server.http in frame.get("unreachableUrl", frame["url"]) and frame.get("name") != "sink"]
                assert all("unreachableUrl" in frame for frame in within) and len(apart) + len(within) == 1, (host, apart, frames)
                browser.problems.clear()
                keep(other, f"other-sites-{host}")
                assert state() == before, (host, before, state())
        # A name of another site's that leads here, with the cookie, as after DNS rebinding.
        cookie = "; ".join(f"{each['name']}={each['value']}" for each in page.send("Network.getCookies")["cookies"])
        assert cookie, "no cookie"
        # The API takes no cookie without the page's secret, whatever the name.
        for method, path, expected in (("GET", "/api/v1/rooms", 401), ("GET", "/", 421), ("POST", "/console/login", 421)):
            connection = http.client.HTTPConnection(server.http, timeout=30)
            connection.putrequest(method, path, skip_host=True)
            for name, value in (("Host", "rebound.example"), ("Cookie", cookie), ("Content-Type", "application/json"), ("Content-Length", "2" if method == "POST" else "0")):
                connection.putheader(name, value)
            connection.endheaders(b"{}" if method == "POST" else None)
            answer = connection.getresponse()
            assert answer.status == expected, (method, path, answer.status, answer.read()[:200])
            connection.close()
        changes = [line for line in server.api("audit?limit=1000")["list"] if line not in lines and line["result"] == "ok"]
        assert not changes, changes
        # Still logged in, and the console's own page may do what the others could not.
        browser.problems.clear()
        page.send("Page.reload")
        page.wait("Boolean(document.querySelector('header.bar'))", "the console, logged in as before")
        visit(page, "#/rooms/cam")
        page.click("End the room…")
        page.click("Close room")
        page.click("Close room", within="document.querySelector('dialog')")
        wait_for("the room's end", lambda: server.api("rooms/cam")["state"] == "closed")
        page.wait("document.querySelector('.head').innerText.includes('closed')", "the end on the page")
        visit(page, "#/tokens")
        page.wait("Boolean(document.querySelector('td'))", "the tokens")
