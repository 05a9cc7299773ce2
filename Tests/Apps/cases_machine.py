"""The claw machine's cases: its page in Chromium, its script for other pages, its HTTP API."""
from browser import Browser
from machine_lab import Camera, Claw, Player, call, create, data, state
from registry import case
from server import wait_for

RED, BLUE = (254, 0, 0), (0, 0, 254)


@case
def machine_page(server):
    """Two players at the page, two cameras and the scripted machine: one wins, the next one loses."""
    machine = create(server)
    number = machine["roomId"]
    with Camera(server, machine["pushUrl1"], "red"), Camera(server, machine["pushUrl2"], "blue"), Browser(server.folder) as browser:
        with Claw(server, number, 1) as claw:
            page = browser.page(f"http://{server.http}/demo/machine")
            page.wait("document.querySelector('#machines a')?.textContent.includes('Panda')", "the machine in the list")
            page.wait("document.querySelector('#machines a').textContent.includes('Live')", "its state")
            one, two = Player(browser, server, number), Player(browser, server, number, width=390, height=844, is_phone=True)
            assert one.accid != two.accid
            one.sees_colour(RED)
            one.press("#camera")
            one.sees_colour(BLUE)
            one.press("#camera")
            one.sees_colour(RED)
            one.keep("machine-room")
            one.press("#queue")
            two.sees(one.name, "#entries")
            two.press("#queue")
            two.sees("You are number 2 of 2", "#place")
            one.is_invited()
            one.keep("machine-invited")
            two.sees("is called to play")
            one.press("#accept")
            one.sees("You are playing")
            two.sees("is playing")
            one.key("ArrowLeft", True)
            claw.says("the claw goes left")
            one.key("ArrowLeft", False)
            claw.says("the claw stops")
            one.mouse("[data-move=up]", "mousePressed")
            claw.says("the claw goes back")
            one.keep("machine-playing")
            before = claw.lines.count("the claw stops")
            one.mouse("[data-move=up]", "mouseReleased")
            wait_for("the claw to stop", lambda: claw.lines.count("the claw stops") > before)
            one.press("#camera")
            claw.says("looks through camera 2")
            # A mouse that was on a button leaves the space bar to the claw.
            one.key(" ", True)
            one.key(" ", False)
            claw.says("the claw drops")
            one.sees("The claw is on its way")
            one.keep("machine-settling")
            one.sees("You won!", "#result")
            one.keep("machine-won")
            assert one.page.run("document.querySelector('#queue').offsetParent !== null"), "who has played may queue again"
        with Claw(server, number, 0) as claw:
            two.is_invited()
            two.keep("machine-invited-phone")
            two.press("#accept")
            two.sees("You are playing")
            two.mouse("[data-move=down]", "mousePressed")
            claw.says("the claw goes front")
            two.keep("machine-playing-phone")
            two.mouse("[data-move=down]", "mouseReleased")
            assert two.page.run("document.documentElement.scrollWidth <= innerWidth"), "it fits a phone"
            two.press("#drop")
            two.sees("Nothing caught", "#result")
            two.keep("machine-lost-phone")
            one.sees("Queue up to play")
        one.sees("machine itself is not connected")
        problems = [problem for problem in browser.problems if "favicon" not in problem]
        assert not problems, problems


machine_page.settings = {"EARSHOT_APPS_DEMO": "on"}
