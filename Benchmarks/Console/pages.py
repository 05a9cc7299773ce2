"""How quickly the console's pages show something, and whether an open one grows."""
import os
import threading
import time

from bars import rank
from browser import Browser
from calls import calls
from clips import Pushes
from load import SETTINGS
from looks import opened, visit
from server import Server, wait_for

# When the first tile has been painted, since the page was asked for.
PAINTED = """(() => { if (location.protocol === 'about:') return; const look = new MutationObserver(() => { if (!document.querySelector('.tile .name')) return; look.disconnect();
    requestAnimationFrame(() => setTimeout(() => { window.painted = performance.now(); })); }); look.observe(document, { childList: true, subtree: true }); })()"""

# From the address to the first picture on the screen.
OPEN = """new Promise((done, fail) => { const start = performance.now(); location.hash = '#/rooms/NAME'; setTimeout(() => fail(new Error('no picture within 20 s')), 20000);
    const look = () => { const video = document.querySelector('#preview'); if (!video) return setTimeout(look, 1);
        video.requestVideoFrameCallback(() => done(performance.now() - start)); };
    look(); })"""


def paint(binary, folder, bars):
    with Server(binary, folder, settings=SETTINGS) as server, Pushes(server, folder, 24), Browser(folder) as browser:
        page = opened(server, browser)
        page.send("Network.setCacheDisabled", cacheDisabled=True)
        page.send("Page.addScriptToEvaluateOnNewDocument", source=PAINTED)
        times, sizes, pictures = [], [], []
        for _ in range(10):
            page.open("about:blank")
            page.wait("location.href === 'about:blank'", "an empty page")
            page.open(f"http://{server.http}/")
            times.append(page.wait("window.painted", "the first tile"))
            entries = "[...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]"
            sizes.append(page.run(f"{entries}.filter((e) => !e.name.includes('snapshot')).reduce((sum, e) => sum + e.transferSize, 0)") / 1000)
            page.wait("document.querySelectorAll('.tile img').length >= 8", "pictures")
            pictures.append(page.run(f"{entries}.filter((e) => e.name.includes('snapshot')).reduce((sum, e) => sum + e.transferSize, 0)") / 1000)
        bars.note("first tiles painted, without a cache, median of 10", rank(times, 0.5), "ms", 500.0)
        bars.note("… transferred until then", rank(sizes, 0.5), "KB", 200.0)
        bars.note("… pictures of the tiles in view", rank(pictures, 0.5), "KB")


def preview(binary, folder, bars):
    with Server(binary, folder, settings=SETTINGS) as server, Pushes(server, folder, 12), Browser(folder) as browser:
        page = opened(server, browser)
        times = []
        for number in range(11):
            page.wait("document.querySelectorAll('.tile').length === 12 && !document.querySelector('#preview')", "the wall")
            times.append(page.run(OPEN.replace("NAME", f"s{number}")))
            visit(page, "#/rooms")
        # The first one loads the page's scripts, too.
        bars.note("preview, from opening a room's page to the first picture: the first time", times[0], "ms")
        bars.note("… median of the next 10, each of another room", rank(times[1:], 0.5), "ms", 500.0)
        bars.note("… the slowest", max(times[1:]), "ms")


def heap(binary, folder, bars):
    """A page's timers run faster, and as much happens as the server gives: what a day brings, in minutes."""
    seconds, speed = float(os.environ.get("HEAP_SECONDS", "180")), int(os.environ.get("HEAP_SPEED", "100"))
    # Only the timers of pages: animation and media keep their time, and the clock by which a preview judges them.
    fast = f"""(() => {{ const after = setTimeout, each = setInterval; window.turns = 0;
        window.setTimeout = (work, ms, ...more) => after(() => {{ turns += 1; work(...more); }}, ms > 300 ? ms / {speed} : ms); window.setInterval = (work, ms, ...more) => each(work, ms > 300 ? ms / {speed} : ms, ...more);
        const now = performance.now.bind(performance), start = now(); if (!location.hash.startsWith('#/rooms/')) performance.now = () => start + (now() - start) * {speed};
        const Socket = WebSocket; window.heard = 0; window.WebSocket = class extends Socket {{ constructor(...all) {{ super(...all); this.addEventListener('message', () => {{ heard += 1; }}); }} }};
        const Picture = URL.createObjectURL; window.pictures = 0; URL.createObjectURL = (...all) => {{ pictures += 1; return Picture.apply(URL, all); }}; }})()"""
    with Server(binary, folder, settings=SETTINGS) as server, Pushes(server, folder, 12), Browser(folder) as browser:
        first = opened(server, browser)
        tabs = {}
        for name, address in (("wall", "#/rooms"), ("room", "#/rooms/s3"), ("events", "#/events"), ("server", "#/server")):
            page = browser.page(beside=first)
            page.send("Page.addScriptToEvaluateOnNewDocument", source=fast)
            page.send("HeapProfiler.enable")
            page.send("Performance.enable")
            page.open(f"http://{server.http}/{address}")
            page.wait("document.querySelector('main')?.innerText.length > 20", name)
            tabs[name] = page
        visit(first, "#/server")
        going = [True]

        def churn():
            number = 0
            while going[0]:
                calls(server, (("PATCH", f"rooms/s{3 if n % 2 else (number + n) % 12}", {"title": f"title {number + n}"}) for n in range(200)), threads=2, rate=100)
                number += 200

        worker = threading.Thread(target=churn)
        worker.start()

        def weigh(page):
            for _ in range(3):
                page.send("HeapProfiler.collectGarbage")
            counts = {metric["name"]: metric["value"] for metric in page.send("Performance.getMetrics")["metrics"]}
            return page.send("Runtime.getHeapUsage")["usedSize"] / 1e6, counts["Nodes"], counts["JSEventListeners"]

        try:
            # Lists reach their bounds first.
            rows = "document.querySelectorAll('.timeline li').length"
            wait_for("the lists to be full", lambda: tabs["events"].run(rows) >= 300 and tabs["room"].run(rows) >= 200 and tabs["events"].run("heard") > 1_200, 120)
            before = {name: weigh(page) for name, page in tabs.items()}
            time.sleep(seconds)
            after = {name: weigh(page) for name, page in tabs.items()}
        finally:
            going[0] = False
            worker.join()
        bars.note("events that the pages heard", tabs["events"].run("heard"), "")
        bars.note("pictures that the wall showed", tabs["wall"].run("pictures"), "")
        bars.note("turns of the pages' timers", sum(page.run("turns") for page in tabs.values()), "")
        for name in tabs:
            bars.note(f"heap of {name}, {before[name][0]:.1f} MB, grew by", after[name][0] - before[name][0], "MB", 1.0)
            bars.note("… nodes, more", int(after[name][1] - before[name][1]), "", 200)
            bars.note("… listeners, more", int(after[name][2] - before[name][2]), "", 100)
