"""Very many rooms that come, change and go beside an open console."""
from calls import calls
from looks import case, opened, visit
from server import Device, wait_for

# More are in Benchmarks/console.sh.
ROOMS = 2_000
WATCH = """(() => {
    window.lag = []; let due = performance.now() + 50;
    setInterval(() => { const now = performance.now(); lag.push(now - due); due = now + 50; }, 50);
})()"""


@case(settings={"EARSHOT_API_RATE_LIMIT": "1000000"})
def many_rooms(server, browser, keep):
    server.api("rooms", {"roomId": "lasting", "title": "the lasting one"})
    wall = opened(server, browser)
    visit(wall, "#/rooms?state=&q=&sort=-createdAt")
    wall.wait("document.body.innerText.includes('the lasting one')", "the wall")
    wall.run(WATCH)
    events = browser.page(f"http://{server.http}/", beside=wall)
    visit(events, "#/events")
    events.wait("Boolean(document.querySelector('.timeline li'))", "the events")
    calls(server, (("POST", "rooms", {"roomId": f"r{n}", "title": f"room {n}"}) for n in range(ROOMS)))
    wall.wait(f"document.querySelector('.head').innerText.includes('{ROOMS + 1:,} rooms')", "all rooms in the total")
    assert wall.run("document.querySelectorAll('.tile').length") == 24, "one page of them"
    wall.wait("!document.querySelector('.pages').hidden", "pages")
    wall.click("Next")
    wall.wait("![...document.querySelectorAll('.pages button')][0].disabled", "the second page")
    wall.click("Previous")
    calls(server, (("PATCH", f"rooms/r{n}", {"title": f"other {n}"}) for n in range(ROOMS - 500, ROOMS)))
    wall.wait("document.querySelector('.tile .name').textContent.startsWith('other ')", "the new titles")
    wall.run("(() => { const s = document.querySelector('#search'); s.value = 'lasting'; s.dispatchEvent(new Event('input')); })()")
    wall.wait("document.querySelectorAll('.tile').length === 1", "the one that is sought")
    keep(wall)
    wall.run("(() => { const s = document.querySelector('#search'); s.value = ''; s.dispatchEvent(new Event('input')); })()")
    calls(server, (("DELETE", f"rooms/r{n}", None) for n in range(ROOMS)))
    wall.wait("document.querySelector('.head').innerText.includes('1 room') && document.querySelectorAll('.tile').length === 1", "the lasting one alone")
    events.wait("document.querySelectorAll('.timeline li').length <= 300 && document.querySelector('.timeline li').innerText.includes('room.deleted')", "the newest event first")
    worst = wall.run("Math.max(...lag)")
    assert worst < 5_000, f"the wall stood for {worst:.0f} ms"
    wait_for("the server's own check", lambda: server.api("selfcheck")["ok"])


@case()
def page_sizes(server, browser, keep):
    """The user chooses how many rooms a page has; the address keeps it."""
    calls(server, (("POST", "rooms", {"roomId": f"r{n:02}", "title": f"room {n}"}) for n in range(67)))
    names = ("one", "two", "three")
    tiles = "document.querySelectorAll('.tile').length"
    with Device(server, "live/one"), Device(server, "live/two"), Device(server, "live/three"):
        wait_for("three live rooms", lambda: all(server.is_live(name) for name in names))
        page = opened(server, browser)

        def choose(name, value):
            page.run(f"(() => {{ const s = document.querySelector('select[name={name}]'); s.value = '{value}'; s.dispatchEvent(new Event('change')); }})()")

        page.wait(f"{tiles} === 3", "the live rooms")
        choose("state", "")
        page.wait(f"{tiles} === 24", "a page as it is at first")
        choose("pageSize", "60")
        page.wait(f"{tiles} === 60", "a larger page")
        assert "pageSize=60" in page.run("location.hash")
        page.wait("document.querySelectorAll('.tile img').length === 3", "pictures of the live ones")
        keep(page)
        page.send("Page.reload")
        page.wait(f"{tiles} === 60 && document.querySelector('select[name=pageSize]').value === '60'", "the same after a reload")
        page.click("Next")
        page.wait(f"{tiles} === 10", "the second page")
        # Sorted here, by figures that the store does not have: pages, too.
        choose("sort", "viewers")
        page.wait(f"{tiles} === 60 && document.querySelector('.tile').innerText.includes('live')", "the first page of the sorted ones")
        page.click("Next")
        page.wait(f"{tiles} === 10", "the rest of them")
        choose("pageSize", "200")
        page.wait(f"{tiles} === 70 && document.querySelector('.pages').hidden", "all on one page")
        choose("state", "live,interrupted")
        page.wait(f"{tiles} === 3", "the live ones, by the streams' order")
        # Pictures of tiles in view come again.
        first = page.run("(window.first = document.querySelector('.tile img')).src")
        page.wait("document.querySelector('.tile img') !== first", f"another picture than {first}")
        visit(page, "#/rooms?state=&pageSize=7")
        page.wait(f"{tiles} === 24 && document.querySelector('select[name=pageSize]').value === '24'", "a size that there is")
