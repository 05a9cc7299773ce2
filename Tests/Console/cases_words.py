"""The console's texts for somebody who has read nothing about it."""
from looks import case, opened, visit


@case()
def nothingLive(server, browser, keep):
    """An empty wall says how to push, to the server's own address; one whose rooms are not live leads to them."""
    page = opened(server, browser)
    page.wait(f"document.querySelector('main').innerText.includes('rtmp://{server.rtmp}/live/cam1')", "the address with its port")
    for room in ("one", "two"):
        server.api("rooms", {"roomId": room})
    page.wait("document.querySelector('main').innerText.includes('No room is live now.')", "that the rooms are not live")
    words = page.text()
    assert "0 live" in words and "2 not live" in words and "Nobody has pushed" not in words, words
    keep(page)
    visit(page, "#/rooms?sort=viewers")
    page.wait("document.querySelector('main').innerText.includes('No room is live now.')", "the same in another order")
    page.click("Show the rooms that are not live")
    page.wait("document.querySelectorAll('.wall a').length === 2", "the rooms")


@case(settings={"EARSHOT_URLS_RTMP": "rtmp://live.example.com", "EARSHOT_URLS_HTTP": "http://live.example.com:8080"})
def addresses(server, browser, keep):
    """Addresses that others can use: a code for a phone, and the players' addresses by protocol."""
    server.api("rooms", {"roomId": "cam"})
    page = opened(server, browser)
    visit(page, "#/rooms/cam")
    page.click("Show the push address")
    page.wait("document.querySelector('.qr')?.naturalWidth > 0", "the code")
    page.click("Show the play addresses")
    panel = "[...document.querySelectorAll('section')].find((each) => each.querySelector('h2')?.textContent === 'Play addresses')"
    page.wait(f"['http://live.example.com:8080/live/cam.m3u8', 'http://live.example.com:8080/live/cam.flv', 'rtmp://live.example.com/live/cam'].every((each) => {panel}.innerText.includes(each))", "the addresses")
    assert "works on the server itself only" not in page.text(), "a warning without a cause"
    page.run(f"{panel}.scrollIntoView({{block: 'center'}})")
    keep(page)
