"""What the console says to somebody who has not read anything about it."""
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
