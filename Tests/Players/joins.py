"""How soon the first viewer of a stream sees a picture: hls.js in one browser, again and again, each time on a stream that nobody watches yet.

    python3 Tests/Players/joins.py --earshot BINARY [--joins 10] [--only WORD]
"""

import argparse
import contextlib
import http.server
import itertools
import json
import os
import queue
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import scripts
from pages import advised
from processes import Process, unprivileged, wait_for
from servers import Earshot

PLAYERS = ("hls.js-1.5", "hls.js-1.6")
# Seconds from a keyframe to the next: usual devices', and OBS's 250 pictures at 30 a second.
INTERVALS = (2, 4, 8.3)
RATE = 30
# Milliseconds from the player's start to its first picture.
LIMIT_MS = 2_000
# Between two joins: one ends before the next begins.
STEP_SECONDS = 2.5

PAGE = """<!doctype html><video id="video" muted autoplay playsinline width="320" height="180"></video>
<script type="module" src="/script.js"></script>
<script type="module">
const old = document.getElementById('video');
async function join(url) {
  const video = old.cloneNode(), said = [];
  document.body.append(video);
  %s
  const begin = performance.now();
  hls.on(Hls.Events.ERROR, (_, data) => { if (data.fatal) said.push(data.details); });
  const first = new Promise((shown) => video.requestVideoFrameCallback(() => shown(Math.round(performance.now() - begin))));
  const ms = await Promise.race([first, new Promise((late) => setTimeout(() => late(null), 20_000))]);
  hls.destroy();
  video.remove();
  await fetch('/shown', { method: 'POST', body: JSON.stringify({ ms, said }) });
}
for (;;) {
  const url = await (await fetch('/next')).text();
  if (url) await join(url);
}
</script>"""


class Browser:
    """Headless Chromium with one player. `join` is called by one thread at a time."""

    def __init__(self, player, folder):
        self.jobs, self.answers = queue.Queue(), queue.Queue()
        script = scripts.script(player)
        page = (PAGE % advised("new Hls(")).encode()
        owner = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                if self.path == "/next":
                    try:
                        body, kind = owner.jobs.get(timeout=5).encode(), "text/plain"
                    except queue.Empty:
                        body, kind = b"", "text/plain"
                else:
                    body, kind = (script, "text/javascript") if self.path == "/script.js" else (page, "text/html; charset=utf-8")
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                with contextlib.suppress(BrokenPipeError):
                    self.wfile.write(body)

            def do_POST(self):
                owner.answers.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        profile = os.path.join(folder, f"profile-{player}")
        command = [*unprivileged(profile), "env", f"HOME={profile}", "chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--mute-audio"]
        command += [f"--user-data-dir={profile}/data", "--no-first-run", "--autoplay-policy=no-user-gesture-required", "--disable-background-networking"]
        self.process = Process([*command, f"http://127.0.0.1:{self.server.server_port}/"], os.path.join(folder, f"{player}.log"))

    def join(self, url):
        """Milliseconds to the first picture, None after 20 s; and what was fatal."""
        self.jobs.put(url)
        answer = self.answers.get(timeout=60)
        return answer["ms"], answer["said"]

    def close(self):
        self.process.stop()
        self.server.shutdown()
        self.server.server_close()


def record(path, interval, has_sound, b_frames):
    """Two minutes of a stream with a keyframe each `interval` seconds, encoded once."""
    command = ["ffmpeg", "-nostdin", "-v", "error", "-y", "-f", "lavfi", "-i", f"testsrc2=size=320x180:rate={RATE}"]
    command += ["-f", "lavfi", "-i", "sine=440:sample_rate=48000"] if has_sound else []
    frames = round(interval * RATE)
    command += ["-t", "120", "-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-b:v", "400k", "-bf", "2" if b_frames else "0"]
    command += ["-g", str(frames), "-keyint_min", str(frames), "-sc_threshold", "0"]
    subprocess.run([*command, *(["-c:a", "aac", "-b:a", "64k"] if has_sound else []), "-f", "flv", path], check=True)


def joins_of(shape, browsers, server, folder, count):
    """Joins of streams of one shape, one after another: a list of (milliseconds, what was fatal) for each player."""
    interval, has_sound, b_frames = shape
    path = os.path.join(folder, "stream.flv")
    record(path, *shape)
    names = [f"{random.randrange(1 << 40):x}" for _ in range(count * len(browsers))]
    seen = {player: [] for player in browsers}
    with contextlib.ExitStack() as pushes:
        for name in names:
            server.create_room(name)
            # Begins at another place of its group each time.
            push = ["ffmpeg", "-nostdin", "-v", "error", "-re", "-i", path, "-c", "copy", "-f", "flv", server.push_url(name)]
            pushes.callback(Process(push, os.path.join(folder, "pushes.log")).stop)
            time.sleep(0.05)
        for name in names:
            wait_for("a stream", 20, lambda name=name: server.is_live(name))
        time.sleep(max(3, random.uniform(interval, interval * 2)))
        for name, player in zip(names, itertools.cycle(browsers)):
            began = time.monotonic()
            seen[player].append(browsers[player].join(server.play_url("page-hls", name)))
            time.sleep(max(0, STEP_SECONDS + random.random() - (time.monotonic() - began)))
    return seen


def main():
    parser = argparse.ArgumentParser(prog="joins", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--earshot", required=True, help="the binary to test")
    parser.add_argument("--joins", type=int, default=10, help="of each player and kind of stream (default 10)")
    parser.add_argument("--only", default="", help="only kinds of streams whose names hold this")
    options = parser.parse_args()
    bad = 0
    with tempfile.TemporaryDirectory(prefix="earshot-joins-") as folder, contextlib.ExitStack() as ending:
        # Chromium is another user where the suite is root.
        os.chmod(folder, 0o755)
        server = ending.enter_context(Earshot(os.path.abspath(options.earshot), folder))
        browsers = {player: Browser(player, folder) for player in PLAYERS}
        for browser in browsers.values():
            ending.callback(browser.close)
        print(f"      {'stream':38} {'player':12} median  most   ms", flush=True)
        for shape in itertools.product(INTERVALS, (True, False), (False, True)):
            interval, has_sound, b_frames = shape
            name = f"keyframes each {interval:g} s{'' if has_sound else ', no sound'}{', B-frames' if b_frames else ''}"
            if options.only not in name:
                continue
            for player, joins in joins_of(shape, browsers, server, folder, options.joins).items():
                times = [20_000 if ms is None else ms for ms, _ in joins]
                fatal = [error for _, errors in joins for error in errors]
                is_well = max(times) <= LIMIT_MS and not fatal
                bad += not is_well
                every = " ".join(str(ms) for ms in sorted(times))
                print(f"{'ok  ' if is_well else 'FAIL'}  {name:38} {player:12} {statistics.median(times):6.0f} {max(times):5}   {every} {' '.join(fatal)}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
