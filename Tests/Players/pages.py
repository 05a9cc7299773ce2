"""A little HTTP server for the pages that Chromium opens, and for what these report."""

import http.server
import json
import os
import re
import threading
import time

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
# The browser's own HLS player.
HLS_PAGE = b"""<!doctype html><style>html, body { margin: 0; background: #000 } video { width: 100vw; height: 100vh; display: block }</style>
<video id="video" muted autoplay playsinline></video>
<script>document.getElementById('video').src = new URLSearchParams(location.search).get('url');</script>"""
# A player in JavaScript, as the documents say that it is to be used.
SCRIPT_PAGE = """<!doctype html><style>html, body { margin: 0; background: #000 } video { width: 100vw; height: 100vh; display: block }</style>
<video id="video" muted autoplay playsinline></video>
<script>window.said = []; addEventListener('error', (event) => said.push(event.message));</script>
<script type="module" src="/script.js"></script>
<script type="module">
const video = document.getElementById('video'), url = new URLSearchParams(location.search).get('url');
%s
if (window.Hls) hls.on(Hls.Events.ERROR, (_, data) => said.push(`${data.details}${data.fatal ? ', fatal' : ''}: ${data.error?.message ?? data.reason ?? ''}`));
else player.on(mpegts.Events.ERROR, (...what) => said.push(what.slice(0, 2).join(' ')));
</script>"""
# Put behind each page, which goes on as it is.
REPORTER = b"""<script>{
  const video = document.querySelector('video'), events = [];
  for (const name of ['playing', 'waiting', 'stalled', 'error', 'ended', 'pause', 'seeking', 'emptied'])
    video.addEventListener(name, () => events.push(name + '@' + video.currentTime.toFixed(2)));
  setInterval(() => fetch('/report', {method: 'POST', body: JSON.stringify({
    videoBytes: video.webkitVideoDecodedByteCount, audioBytes: video.webkitAudioDecodedByteCount, textTracks: video.textTracks.length,
    width: video.videoWidth, time: video.currentTime, rate: video.playbackRate, ready: video.readyState,
    buffered: Array.from(video.buffered, (_, i) => [video.buffered.start(i), video.buffered.end(i)]),
    error: video.error ? video.error.message : '', said: window.said?.splice(0) ?? [], status: document.getElementById('status')?.textContent ?? '', events: events.splice(0)})}), 200);
}</script>"""


def advised(what):
    """The lines of JavaScript with which docs/playing.md says how a player is made."""
    with open(os.path.join(ROOT, "docs", "playing.md"), encoding="utf-8") as file:
        return next(code for code in re.findall(r"```js\n(.*?)```", file.read(), re.DOTALL) if what in code)


class Pages:
    """Serves on a port of its own until it is closed. `script`: the bytes of a player in JavaScript, and the lines that make one."""

    def __init__(self, log, script=None):
        self.log = log
        self.script = script
        self.last = None
        self.first_at = None
        self.events = []
        # Every text that the page has shown to its user, and every number of ranges that its buffer had.
        self.statuses = []
        owner = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                owner._answer(self)

            def do_POST(self):
                owner._take(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def url(self, page):
        return f"http://127.0.0.1:{self.server.server_port}/{page}"

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def _answer(self, request):
        name = request.path.partition("?")[0].lstrip("/")
        kind = "text/html"
        if name == "hls.html":
            page = HLS_PAGE + REPORTER
        elif name == "script.html":
            page = (SCRIPT_PAGE % self.script[1]).encode() + REPORTER
        elif name == "script.js":
            page, kind = self.script[0], "text/javascript"
        elif name == "player.html":
            with open(os.path.join(ROOT, "docs", name), "rb") as file:
                page = file.read() + REPORTER
        else:
            request.send_error(404)
            return
        request.send_response(200)
        request.send_header("Content-Type", f"{kind}; charset=utf-8")
        request.send_header("Content-Length", str(len(page)))
        request.end_headers()
        request.wfile.write(page)

    def _take(self, report):
        self.first_at = self.first_at or time.time()
        self.events += report["events"]
        if report["status"] and (not self.statuses or self.statuses[-1] != report["status"]):
            self.statuses.append(report["status"])
        self.last = report
        with open(self.log, "a", encoding="utf-8") as file:
            file.write(f"{time.time() - self.first_at:.2f} {json.dumps(report)}\n")
