"""The cost of a console for a busy server, and how quickly it and the API answer beside many rooms."""
import os
import shutil
import time

from bars import cpu_seconds, memory_mb, rank
from browser import Browser
from calls import calls, timed
from clips import Pushes
from looks import opened, visit
from server import Server

SETTINGS = {"EARSHOT_API_RATE_LIMIT": "1000000", "EARSHOT_LIMITS_PUBLISHES_PER_ADDRESS": "100000"}
# How late the page's own timers are.
LAG = """(() => { window.lag = []; let due = performance.now() + 20;
    setInterval(() => { const now = performance.now(); lag.push(now - due); due = now + 20; }, 20); })()"""
# The wall's tiles that are on the screen, and how old the oldest of their pictures is.
IN_VIEW = "[...document.querySelectorAll('.tile')].filter((tile) => { const box = tile.getBoundingClientRect(); return box.bottom > 0 && box.top < innerHeight; })"
COUNT = """(() => { window.came = new WeakMap(); const seen = (image) => came.set(image, performance.now()); document.querySelectorAll('.tile img').forEach(seen);
    new MutationObserver((all) => { for (const each of all) for (const node of each.addedNodes) if (node.tagName === 'IMG') seen(node); })
        .observe(document.querySelector('.wall'), { childList: true, subtree: true }); })()"""
OLDEST = f"Math.max(...{IN_VIEW}.map((tile) => performance.now() - came.get(tile.querySelector('img'))))"
# Pages of rooms as the wall asks for them, by the browser itself, one after another.
ASK = """(() => { window.answers = []; window.asking = true; const csrf = { 'X-Csrf-Token': SECRET };
    (async () => { while (asking) { const start = performance.now(); const answer = await fetch('/api/v1/rooms?sort=-createdAt&pageSize=24', { headers: csrf }); await answer.text();
        answers.push(answer.ok ? performance.now() - start : 1e9); await new Promise((next) => setTimeout(next, 50)); } })(); })()"""


def cost(binary, folder, bars):
    streams, seconds = int(os.environ.get("STREAMS", "200")), float(os.environ.get("SECONDS_MEASURED", "60"))
    # The processes that make the load run on the other core.
    before = ["taskset", "-c", "0"] if (os.cpu_count() or 1) > 1 and shutil.which("taskset") else []
    if before:
        os.sched_setaffinity(0, {1})
    with Server(binary, folder, settings=SETTINGS, before=before) as server, Pushes(server, folder, streams):
        pid = server.process.pid
        time.sleep(20)

        def received():
            return sum(stream["bytesIn"] for stream in server.api("streams?limit=1000")["list"])

        def measure():
            """% of a core, MB, and media that came in kbit/s."""
            bytes_in, begun, start = received(), time.monotonic(), cpu_seconds(pid)
            time.sleep(seconds)
            took, used = time.monotonic() - begun, cpu_seconds(pid) - start
            return 100 * used / took, memory_mb(pid), (received() - bytes_in) / 125 / took

        received()
        first_memory, at = memory_mb(pid), time.monotonic()
        alone, memory, came = measure()
        # Figures of a stream's last ten minutes fill up whoever looks: as fast with a console as before.
        growth = max(0, memory - first_memory) / (time.monotonic() - at)
        at = time.monotonic()
        with Browser(folder) as browser:
            first = opened(server, browser, height=1000)
            second = browser.page(f"http://{server.http}/", height=1000, beside=first)
            for page in (first, second):
                visit(page, "#/rooms?pageSize=200")
                page.wait(f"document.querySelectorAll('.tile').length === {min(streams, 200)}", "all tiles on one page")
                page.wait(f"{IN_VIEW}.length >= {min(streams, 12)} && {IN_VIEW}.every((tile) => tile.querySelector('img'))", "pictures of the tiles in view")
                page.run(COUNT)
            time.sleep(15)
            watched, later, comes = measure()
            grown = growth * (time.monotonic() - at)
            tiles, in_view, oldest = ([page.run(script) for page in (first, second)] for script in ("document.querySelectorAll('.tile').length", f"{IN_VIEW}.length", OLDEST))
    bars.note(f"CPU of the server, {streams} pushes alone", alone, "% of a core")
    bars.note(f"… with the wall open in two browsers ({tiles[0]} and {tiles[1]} tiles, {in_view[0]} and {in_view[1]} in view), more", watched - alone, "% of a core", 10.0)
    bars.note("… tiles lacking on a page", min(streams, 200) - min(tiles), "", 0)
    bars.note("… oldest picture in view", max(oldest) / 1000, "s", 15.0)
    # Pushes that the browsers keep from sending cost the server less: such a run says nothing.
    bars.note("… media that came less than before", 100 * max(0.0, 1 - comes / came), "%", 3.0)
    bars.note(f"… memory, {memory:.0f} MB, more (without the {grown:.1f} MB that it grows anyhow in that time)", later - memory - grown, "MB", 10.0)


def change(binary, folder, bars):
    """All rooms change: at a steady rate, and as fast as calls can be made."""
    rate = float(os.environ.get("RATE", "200"))
    _change(binary, os.path.join(folder, "paced"), bars, {"rate": rate})
    _change(binary, os.path.join(folder, "unpaced"), bars, {"threads": 16})


def _change(binary, folder, bars, pace):
    os.mkdir(folder)
    count = int(os.environ.get("CHANGING", "5000"))
    with Server(binary, folder, settings=SETTINGS) as server, Browser(folder) as browser:
        calls(server, (("POST", "rooms", {"roomId": f"r{n}", "title": f"room {n}"}) for n in range(count)))
        wall = opened(server, browser)
        visit(wall, "#/rooms?state=&q=&sort=-createdAt")
        wall.wait("document.querySelectorAll('.tile').length === 24", "the wall")
        secret = wall.run("fetch('/console/session').then((a) => a.json()).then((a) => JSON.stringify(a.data.csrf))")
        wall.run(LAG)
        wall.run(ASK.replace("SECRET", secret))
        begun = time.monotonic()

        def jobs():
            for n in range(count):
                yield "PATCH", f"rooms/r{n}", {"title": f"other {n}"}
                if n % 10 == 0:
                    yield "DELETE", f"rooms/r{n}", None
                    yield "POST", "rooms", {"roomId": f"r{n}", "title": f"again {n}"}

        made = calls(server, jobs(), **pace)
        took = time.monotonic() - begun
        wall.run("asking = false")
        answers, lag = wall.run("answers"), wall.run("lag")
        bars.note(f"changes a second, {count:,} rooms, {'at a steady rate' if 'rate' in pace else 'as fast as calls are made'}", made / took, "")
        bars.note(f"pages of rooms meanwhile, by the browser ({len(answers)}), p50", rank(answers, 0.5), "ms")
        bars.note("… p99", rank(answers, 0.99), "ms", 100.0)
        bars.note("lag of the wall's event loop, p99", rank(lag, 0.99), "ms", 100.0)
        bars.note("… most", max(lag), "ms")


def many(binary, folder, bars):
    count = int(os.environ.get("MANY", "100000"))
    with Server(binary, folder, settings=SETTINGS) as server, Browser(folder) as browser:
        words = ["garden", "harbour", "studio", "bridge", "market", "station", "library", "museum"]
        begun = time.monotonic()
        calls(server, (("POST", "rooms", {"roomId": f"r{n}", "title": f"{words[n % 8]} {words[n // 8 % 8]} {n}", "owner": f"u{n % 1000}", "policy": {"neverStarted": 86400}}) for n in range(count)), threads=16)
        bars.note(f"rooms made a second, up to {count:,}", count / (time.monotonic() - begun), "")
        page = server.api("rooms?pageSize=24&sort=-createdAt")
        asked = {
            "first page": "sort=-createdAt", "last page": "sort=createdAt", "second page": f"sort=-createdAt&after={page['next']}", "by title": "sort=title", "by title, backwards": "sort=-title",
            "one state": "sort=-createdAt&state=created", "a state that none has": "sort=-createdAt&state=live,interrupted", "a word of an eighth of them": "q=garden",
            "a word of one": f"q={count // 2}", "a word of none": "q=nowhere", "a word of a state": "q=harbour&state=created&sort=title",
        }
        for name, query in asked.items():
            bars.note(f"{count:,} rooms, {name}", rank([timed(server, f"rooms?pageSize=24&{query}") for _ in range(20)], 0.5), "ms", 100.0)
        wall = opened(server, browser)
        visit(wall, "#/rooms?state=&q=&sort=-createdAt")
        wall.wait("document.querySelectorAll('.tile').length === 24", "the wall")
        took = wall.run(f"""new Promise((done) => {{ const search = document.querySelector('#search'); search.value = '{count // 2}'; const start = performance.now();
            new MutationObserver((_, watch) => {{ if (document.querySelectorAll('.tile').length === 1) {{ watch.disconnect(); requestAnimationFrame(() => done(performance.now() - start)); }} }})
                .observe(document.querySelector('.wall'), {{ childList: true }});
            search.dispatchEvent(new Event('input')); }})""")
        bars.note("… a search on the wall, from the key to the tile (waits 250 ms for more keys)", took, "ms", 350.0)
