"""Shared by the cases: their list, and looks at pages."""
import json

from pixels import Pixels, is_near
from server import wait_for

CASES = []
RED, BLUE, GREEN = (255, 0, 0), (0, 0, 255), (0, 128, 0)


def case(expected=(), settings=None):
    """`expected`: parts of what the browser may complain of. `settings`: the server's, by environment variable."""
    def register(function):
        function.expected = expected
        function.settings = settings
        CASES.append(function)
        return function
    return register


def box(page, selector):
    """Where an element is on the page."""
    return json.loads(page.wait(f"""(() => {{ const e = document.querySelector({json.dumps(selector)}); if (!e) return '';
        e.scrollIntoView({{block: 'center'}}); const b = e.getBoundingClientRect();
        return b.width > 20 && b.height > 20 ? JSON.stringify({{x: b.x, y: b.y + scrollY, width: b.width, height: b.height}}) : ''; }})()""", selector))


def colour(page, selector):
    """Of the middle of an element, as it is painted."""
    place = box(page, selector)
    middle = {"x": place["x"] + place["width"] / 2 - 4, "y": place["y"] + place["height"] / 2 - 4, "width": 8, "height": 8}
    return Pixels(page.picture(middle)).middle


def see(page, selector, wanted, patience=60):
    """Waits until an element is painted in this colour."""
    seen = []
    def look():
        seen[:] = [colour(page, selector)]
        return is_near(seen[0], wanted)
    try:
        wait_for(f"{selector} to be {wanted}", look, patience)
    except TimeoutError as error:
        raise AssertionError(f"{error}; it is {seen}") from None


def ask(page, text):
    """Presses a button that opens a question, and the button of the same name in it."""
    page.click(text)
    page.click(text, within="document.querySelector('dialog[open]')")


def told(page, result):
    page.wait(f"document.getElementById('notice').textContent === {json.dumps(result)}", f"the notice {result!r}")


def visit(page, address):
    page.run(f"location.hash = {json.dumps(address)}")


def opened(server, browser, **options):
    """The console, logged in by the address that the server printed."""
    page = browser.page(server.console, **options)
    page.wait("Boolean(document.querySelector('header.bar'))", "the console")
    assert "code=" not in page.run("location.href"), "the code stays in the address"
    return page
