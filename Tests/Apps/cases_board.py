"""A class's whiteboard in real browsers."""
import json
import os
import signal
import urllib.request

from browser import Browser
from registry import case


def call(server, path, token="", **body):
    """A call of the class's API; its result."""
    request = urllib.request.Request(
        f"http://{server.http}/classroom/api/v1/room{path}", json.dumps({"roomId": "walk", **body}).encode(), {"Authorization": token})
    with urllib.request.urlopen(request, timeout=30) as answer:
        said = json.load(answer)
    assert said["errCode"] == 0, (path, said)
    return said["data"]["result"]


def board_page(browser, board, member, role, **options):
    """A window with the board, as clients of the class open it."""
    page = browser.page(**options)
    page.open(f"{board}&role={role}&roomId=walk&authorization={member['authorization']}")
    page.wait("document.body.dataset.state === 'live'", "the board")
    return page


def ink(x, y):
    """A script: red, green, blue, alpha of the canvas at a place in parts of its size."""
    return f"""(() => {{ const canvas = document.querySelector('canvas');
        return [...canvas.getContext('2d').getImageData(Math.round({x} * (canvas.width - 1)), Math.round({y} * (canvas.height - 1)), 1, 1).data]; }})()"""


def until(page, x, y, color, what):
    """Until the canvas has this colour there; None: until nothing is drawn there."""
    wanted = "[3] === 0" if color is None else f".join() === '{','.join(map(str, color))},255'"
    page.wait(f"{ink(x, y)}{wanted}", what, patience=20)


def line(page, start, end, pointer="mouse"):
    """Draws from one place to another, both in parts of the canvas."""
    box = page.run("(({left, top, width, height}) => [left, top, width, height])(document.querySelector('canvas').getBoundingClientRect())")
    steps = [[box[i] + box[2 + i] * (start[i] + (end[i] - start[i]) * step / 10) for i in (0, 1)] for step in range(11)]
    if pointer == "touch":
        for index, (x, y) in enumerate(steps):
            page.send("Input.dispatchTouchEvent", type="touchMove" if index else "touchStart", touchPoints=[{"x": x, "y": y}])
        page.send("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
        return
    for index, (x, y) in enumerate(steps):
        page.send("Input.dispatchMouseEvent", type="mouseMoved" if index else "mousePressed", x=x, y=y, button="left", buttons=1, clickCount=1,
                  pointerType=pointer)
    page.send("Input.dispatchMouseEvent", type="mouseReleased", x=steps[-1][0], y=steps[-1][1], button="left", clickCount=1, pointerType=pointer)


def press(page, name, times=1):
    """A key as a keyboard sends it."""
    code, text = {"Tab": (9, ""), "ArrowRight": (39, ""), "Enter": (13, "\r"), " ": (32, " ")}[name]
    for _ in range(times):
        page.send("Input.dispatchKeyEvent", type="keyDown", key=name, code="Space" if name == " " else name, windowsVirtualKeyCode=code, text=text)
        page.send("Input.dispatchKeyEvent", type="keyUp", key=name, code="Space" if name == " " else name, windowsVirtualKeyCode=code)


def keep(server, name, page):
    if server.keep:
        os.makedirs(server.keep, exist_ok=True)
        with open(os.path.join(server.keep, f"{name}.png"), "wb") as file:
            file.write(page.picture())


BLACK, RED, BLUE = (29, 32, 37), (211, 32, 42), (20, 98, 200)


@case
def whiteboard(server):
    """Lines by mouse, touch and pen in one window are seen in the others; pages, clearing, keys, a lost connection."""
    ada, bo, chen = (call(server, "/join", userName=name) for name in ["Ada", "Bo", "Chén"])
    board = call(server, "/whiteboard/create", ada["authorization"])
    with Browser(server.folder) as browser:
        assistant = board_page(browser, board, ada, 1, width=1100, height=720)
        teacher = board_page(browser, board, bo, 2, width=390, height=700, is_phone=True, language="zh-CN")
        student = board_page(browser, board, chen, 3, width=640, height=480, is_dark=True)
        assert student.run("document.querySelector('#tools').hidden && document.querySelector('#next').hidden"), "a student has no tools"
        assert not assistant.run("document.querySelector('#tools').hidden")
        assert teacher.run("document.documentElement.scrollWidth <= innerWidth"), "it fits a phone"

        line(assistant, (0.2, 0.25), (0.8, 0.25))
        for page in (assistant, teacher, student):
            until(page, 0.5, 0.25, BLACK, "the mouse's line")
        line(teacher, (0.2, 0.5), (0.8, 0.5), "touch")
        for page in (teacher, assistant, student):
            until(page, 0.5, 0.5, BLACK, "the finger's line")
        assistant.run("document.querySelector('input[value=red]').click()")
        line(assistant, (0.3, 0.1), (0.3, 0.9), "pen")
        for page in (assistant, student):
            until(page, 0.3, 0.7, RED, "the pen's line")
        line(assistant, (0.9, 0.9), (0.9, 0.9))
        until(student, 0.9, 0.9, RED, "a dot")

        # A student's pointer leaves nothing, also when the page is made to send all the same.
        line(student, (0.2, 0.75), (0.8, 0.75))
        assert student.run(ink(0.5, 0.75))[3] == 0

        # By keys alone: from the colour to the next ones, and on to the widths.
        assistant.run("document.querySelector('input[value=red]').focus()")
        press(assistant, "ArrowRight")
        press(assistant, "Tab")
        press(assistant, "ArrowRight")
        assert assistant.run("[...document.querySelectorAll('input:checked')].map((each) => each.value).join()") == "blue,thick"
        line(assistant, (0.5, 0.8), (0.8, 0.8))
        until(student, 0.6, 0.8, BLUE, "a thick blue line")
        keep(server, "board-assistant", assistant)
        keep(server, "board-phone", teacher)
        keep(server, "board-student", student)

        # Another size shows the same.
        student.size(900, 300)
        until(student, 0.5, 0.25, BLACK, "the line at another size")

        # The rubber takes away what is under it.
        assistant.run("document.querySelector('input[value=rubber]').click()")
        line(assistant, (0.7, 0.2), (0.7, 0.3))
        until(student, 0.7, 0.25, (255, 255, 255), "the rubbed place")

        # The class turns, by the page's own button.
        assistant.run("document.querySelector('#next').click()")
        for page in (assistant, teacher, student):
            until(page, 0.5, 0.25, None, "an empty page")
            assert "2" in page.run("document.querySelector('#page').textContent")
        assistant.run("document.querySelector('input[value=blue]').click()")
        line(assistant, (0.2, 0.4), (0.8, 0.4))
        until(student, 0.5, 0.4, BLUE, "a line on the second page")
        # A page is cleared by two presses of a key.
        assistant.run("document.querySelector('#clear').focus()")
        press(assistant, "Enter")
        assert student.run(ink(0.5, 0.4))[3] == 255 and "all" in assistant.run("document.querySelector('#clear').textContent")
        press(assistant, "Enter")
        until(student, 0.5, 0.4, None, "the cleared page")
        call(server, "/whiteboard/turn-page", ada["authorization"], whiteboardId=board, page=0)
        until(student, 0.5, 0.25, BLACK, "the first page again")

        # The server is gone for a moment.
        server.stop(signal.SIGKILL)
        student.wait("document.querySelector('#status.bad')?.textContent.includes('lost')", "that the connection is lost")
        assert "断开" in teacher.wait("document.querySelector('#status.bad')?.textContent", "the same in Chinese")
        keep(server, "board-lost", assistant)
        server.start()
        for page in (assistant, teacher, student):
            page.wait("document.body.dataset.state === 'live' && !document.querySelector('#status.bad')", "the board again", patience=60)
        line(assistant, (0.2, 0.6), (0.8, 0.6))
        until(teacher, 0.4, 0.6, BLUE, "a line after the restart")
        until(student, 0.5, 0.25, BLACK, "what was drawn before")

        # Roles change while the windows are open.
        call(server, "/change-role", ada["authorization"], userId=chen["userInfo"]["userId"], role=2)
        student.wait("!document.querySelector('#tools').hidden", "the new teacher's tools")
        teacher.wait("document.querySelector('#tools').hidden", "the former teacher's end of drawing")
        call(server, "/kick", ada["authorization"], userId=bo["userInfo"]["userId"])
        teacher.wait("document.querySelector('#status.bad')?.textContent.includes('不在课堂')", "that the member is out")
        call(server, "/whiteboard/delete", ada["authorization"], whiteboardId=board)
        student.wait("document.querySelector('#status.bad')?.textContent.includes('deleted')", "that the board is gone")
        stranger = browser.page()
        stranger.open(f"{board}&role=1&roomId=walk&authorization=nothing")
        stranger.wait("document.querySelector('#status.bad')?.textContent.includes('did not let')", "the refusal")
        keep(server, "board-refused", stranger)
        problems = [each for each in browser.problems if not any(word in each for word in ("favicon", "ERR_CONNECTION_REFUSED", "401", "ERR_CONNECTION_RESET"))]
        assert not problems, problems
