"""Cases: who may do what, who did what, and who is told."""
import json
import urllib.request

from looks import ask, case, opened, told, visit
from server import Device, wait_for


def fill(page, name, value):
    """Of a field of the open dialog or the page."""
    page.wait(f"""(() => {{
        const place = document.querySelector('dialog[open]') ?? document;
        const input = place.querySelector('[name={name}]');
        const value = {json.dumps(value)};
        if (!input) return false;
        input.value = value;
        input.dispatchEvent(new Event('input', {{bubbles: true}}));
        return true;
    }})()""", f"the field {name}")


@case(expected=("401", "403", "404"))
def limitedToken(server, browser, keep):
    """A token made for some rooms, in a browser of its own, sees these alone."""
    page = opened(server, browser)
    for room in ("shop-a-door", "shop-b-door"):
        server.api("rooms", {"roomId": room})
    visit(page, "#/tokens")
    page.click("New token")
    fill(page, "name", "shop-a")
    fill(page, "rooms", "shop-a-, shop-x-")
    page.click("Create", within="document.querySelector('dialog[open]')")
    secret = page.wait("document.querySelector('dialog[open] .secret code')?.textContent", "the secret")
    page.click("Close", within="document.querySelector('dialog[open]')")
    page.wait("[...document.querySelectorAll('tr')].some((row) => row.innerText.includes('shop-a') && row.innerText.includes('rooms shop-a-…, shop-x-…'))", "what it is limited to")
    keep(page)
    other = browser.page(f"http://{server.http}/")
    other.wait("Boolean(document.querySelector('#token'))", "the login")
    other.run(f"document.querySelector('#token').value = {json.dumps(secret)}")
    other.click("Log in")
    other.wait("Boolean(document.querySelector('header.bar'))", "the console")
    visit(other, "#/rooms?state=")
    other.wait("document.body.innerText.includes('shop-a-door')", "its room")
    assert "shop-b-door" not in other.text()
    # A limited token is offered nothing that concerns the whole server, whatever its role.
    chief = server.api("tokens", {"name": "chief", "role": "admin", "rooms": ["shop-a-"]})["secret"]
    third = browser.page(f"http://{server.http}/")
    third.wait("Boolean(document.querySelector('#token'))", "the login")
    third.run(f"document.querySelector('#token').value = {json.dumps(chief)}")
    third.click("Log in")
    third.wait("Boolean(document.querySelector('header.bar'))", "the console")
    assert third.run("[...document.querySelectorAll('header nav a')].map((each) => each.textContent).join()") == "Rooms,Events,Apps"
    for place in ("server", "webhooks", "tokens", "audit"):
        visit(third, f"#/{place}")
        third.wait("document.querySelector('main').innerText.includes('the token is limited to some of its apps or rooms')", place)


@case()
def auditTrail(server, browser, keep):
    """The audit trail is shown in words, found by filters, and downloaded."""
    page = opened(server, browser)
    for room in ("left", "right"):
        server.api("rooms", {"roomId": room})
    server.api("rooms/left/forbid", {"seconds": 600, "reason": "a look"})
    visit(page, "#/audit")
    # The filter's choices have these words too.
    page.wait("[...document.querySelectorAll('tbody tr')].some((row) => row.innerText.includes('Forbade the room'))", "the words")
    assert page.run("document.querySelectorAll('tbody tr').length") >= 3, "the login, the rooms and the ban"
    fill(page, "operation", "createRoom")
    page.wait("[...document.querySelectorAll('tbody tr')].length === 2", "the two rooms made")
    fill(page, "roomId", "right")
    page.wait("[...document.querySelectorAll('tbody tr')].length === 1", "the one that was sought")
    keep(page)
    assert "The file holds the newest 10,000 lines that match the filters." in page.text(), "what the file leaves out"
    csv = page.run("fetch([...document.querySelectorAll('a')].find((each) => each.download === 'audit.csv').href).then((answer) => answer.text())")
    lines = csv.strip().split("\r\n")
    assert len(lines) == 2 and "createRoom" in lines[1] and ",right," in lines[1], csv
    fill(page, "roomId", "nobody")
    page.wait("document.body.innerText.includes('No line fits.')", "that there is nothing")


@case(settings={"EARSHOT_OUTBOUND_ALLOW_PRIVATE": "127.0.0.1"})
def filteredWebhook(server, browser, keep):
    """A target made in the console is told of the chosen events of the chosen rooms only."""
    page = opened(server, browser)
    visit(page, "#/webhooks")
    page.click("Add target")
    fill(page, "name", "shop a")
    fill(page, "url", "http://127.0.0.1:9/hook")
    for group, kind in (("Rooms", "room.created"), ("Rooms", "room.closed"), ("Talk", "talk.floor.denied")):
        page.run(f"[...document.querySelectorAll('dialog summary')].find((each) => each.textContent.startsWith('{group}')).parentElement.open = true")
        page.run(f"document.querySelector('dialog [value=\"{kind}\"]').click()")
    assert page.run("[...document.querySelectorAll('dialog summary')].map((each) => each.textContent)")[:2] == ["Rooms (2)", "Streams"]
    fill(page, "rooms", "shop-a-")
    keep(page)
    page.click("Create", within="document.querySelector('dialog[open]')")
    page.wait("Boolean(document.querySelector('dialog[open] .secret code')?.textContent)", "the secret")
    page.click("Close", within="document.querySelector('dialog[open]')")
    page.wait("[...document.querySelectorAll('tr')].some((row) => row.innerText.includes('Room closed (room.closed), May not speak (talk.floor.denied) · shop-a-…'))", "what it is told")
    hook = server.api("webhooks")["list"][0]
    assert hook["kinds"] == ["room.created", "room.closed", "talk.floor.denied"] and hook["rooms"] == ["shop-a-"], hook
    # Only its own table names it, and it can be changed: what is not filled in stays.
    assert page.run("[...document.querySelectorAll('section')].filter((each) => !each.hidden && each.innerText.includes('webhook-')).length") == 0
    page.click("Change…")
    page.wait("document.querySelectorAll('dialog[open] [name=kinds]:checked').length === 3", "what it is told now")
    keep(page, "change")
    page.run("document.querySelector('dialog [value=\"talk.floor.denied\"]').click()")
    fill(page, "name", "shop b")
    fill(page, "rooms", "")
    page.click("Change", within="document.querySelector('dialog[open]')")
    page.wait("[...document.querySelectorAll('tr')].some((row) => row.innerText.includes('shop b') && !row.innerText.includes('shop-a-'))", "the change")
    after = server.api("webhooks")["list"][0]
    assert (after["name"], after["kinds"], after["rooms"], after["url"]) == ("shop b", ["room.created", "room.closed"], [], hook["url"]), after


@case(expected=("404",))
def roomThatIsNot(server, browser, keep):
    """The page of a room that does not exist says so, asks for no events, and fills when the room is made."""
    page = opened(server, browser)
    page.run("window.asked = 0; const real = fetch; window.fetch = (...all) => { if (String(all[0]).includes('/events/ticket')) window.asked += 1; return real(...all); }")
    visit(page, "#/rooms/later")
    page.wait("document.body.innerText.includes('does not exist')", "that there is none")
    page.wait("new Promise((done) => setTimeout(() => done(true), 6000))", "a while")
    assert page.run("window.asked") == 0, page.run("window.asked")
    server.api("rooms", {"roomId": "later", "title": "Made later"})
    page.wait("document.body.innerText.includes('Made later')", "the room")
    page.wait("window.asked === 1", "its events")
    keep(page)


@case()
def serverPage(server, browser, keep):
    """Every loop, connections by protocol, and why they ended, in words."""
    with Device(server, "live/there"):
        wait_for("the push", lambda: server.is_live("there"))
        page = opened(server, browser)
        visit(page, "#/server")
        page.wait("document.body.innerText.includes('Event loops')", "the loops")
        text = urllib.request.urlopen(urllib.request.Request(f"http://{server.http}/metrics", headers={"Authorization": f"Bearer {server.token}"})).read().decode()
        loops = text.count("\nearshot_event_loop_lag_seconds{")
        panel = "[...document.querySelectorAll('section')].find((each) => each.querySelector('h2')?.textContent === 'Event loops')"
        page.wait("[...document.querySelectorAll('td')].some((each) => each.innerText === 'rtmp' && each.nextElementSibling.innerText === '1')", "the push by its protocol")
        assert loops >= 1 and page.run(f"{panel}.querySelectorAll('tbody tr').length") == loops
        nodes = "[...document.querySelectorAll('section')].find((each) => each.querySelector('h2')?.textContent === 'Nodes')"
        page.wait(f"{nodes}?.hidden", "the nodes, which a server that is alone does not show")
        server.api("streams/live/there/drop", {})
        page.wait("document.body.innerText.includes('its push was ended on request')", "the words", 30)
        keep(page)


@case(expected=("404",))
def gatherings(server, browser, keep):
    """A channel's members and queue, and what an operator does with them."""
    server.api("rooms", {"roomId": "walk"})
    page = opened(server, browser)
    visit(page, "#/apps")
    page.wait("document.body.innerText.includes('No channel, mesh room, class or machine')", "that nobody is there")
    tokens = {user: server.api("rooms/walk/channel-token", {"userId": user, "name": name})["url"] for user, name in (("ann", "<i>Ann</i> 安"), ("bob", "Bob"))}
    page.run(f"""Promise.all(Object.entries({json.dumps(tokens)}).map(([user, url]) => new Promise((done) => {{
        const socket = (window.sockets ??= {{}})[user] = new WebSocket(url);
        socket.onmessage = ({{ data }}) => {{
            const {{ type }} = JSON.parse(data);
            if (type === 'hello') socket.send(JSON.stringify({{ type: 'queue.offer', ref: 1, value: `${{user}}'s` }}));
            if (type === 'ack') done();
        }};
    }})))""")
    page.wait("[...document.querySelectorAll('tr')].some((row) => /plain-walk.*channel.*walk.*2.*2/s.test(row.innerText))", "the channel in the list")
    page.click("plain-walk")
    page.wait("document.body.innerText.includes('<i>Ann</i> 安') && document.body.innerText.includes(\"bob's\")", "its members and its queue")
    keep(page)
    page.click("Pause")
    page.wait("document.body.innerText.includes('Takes nobody new.')", "the paused queue")
    page.click("Take out")
    wait_for("the queue to be shorter", lambda: server.api("gatherings/plain-walk")["queued"] == 1)
    ask(page, "Kick")
    told(page, "Kicked.")
    wait_for("one member less", lambda: server.api("gatherings/plain-walk")["members"] == 1)
    page.wait("Object.values(window.sockets).some((socket) => socket.readyState === 3)", "its connection to be closed")
    ask(page, "End")
    page.wait("location.hash === '#/apps' && document.body.innerText.includes('No channel, mesh room, class or machine')", "its end")
    acts = [line["operation"] for line in server.api("audit?limit=50")["list"]]
    assert {"pauseQueue", "removeFromQueue", "kickFromGathering", "endGathering"} <= set(acts), acts
