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
# WebRTC, as WHEP has it. What it notes of its session is reported with the rest; times are in ms since 1970.
WHEP_PAGE = b"""<!doctype html><style>html, body { margin: 0; background: #000 } video { width: 100vw; height: 100vh; display: block }</style>
<video id="video" muted autoplay playsinline></video>
<script type="module">
const video = document.getElementById('video'), url = new URLSearchParams(location.search).get('url');
const rtc = window.rtc = { states: [] }, now = () => performance.timeOrigin + performance.now();
window.said = [];
addEventListener('unhandledrejection', (event) => said.push(String(event.reason)));
const connection = new RTCPeerConnection(), stream = new MediaStream();
connection.onconnectionstatechange = () => rtc.states.push(connection.connectionState);
connection.ontrack = ({ track }) => {
  stream.addTrack(track);
  track.onended = () => rtc.states.push('ended');
};
for (const kind of ['video', 'audio']) connection.addTransceiver(kind, { direction: 'recvonly' });
await connection.setLocalDescription();
video.requestVideoFrameCallback(() => { rtc.shown = now(); });
rtc.offered = now();
const answer = await fetch(url, { method: 'POST', headers: { 'Content-Type': 'application/sdp' }, body: connection.localDescription.sdp });
const text = await answer.text();
Object.assign(rtc, { status: answer.status, location: answer.headers.get('Location'), etag: answer.headers.get('ETag'), refusal: answer.ok ? null : text });
if (answer.ok) await connection.setRemoteDescription({ type: 'answer', sdp: text });
video.srcObject = stream;
window.obey = async () => { rtc.left = (await fetch(rtc.location, { method: 'DELETE' })).status; };

const context = new AudioContext(), analyser = context.createAnalyser();
analyser.fftSize = 8192;
analyser.smoothingTimeConstant = 0;
if (stream.getAudioTracks().length) context.createMediaStreamSource(stream).connect(analyser);
const levels = new Float32Array(analyser.frequencyBinCount);
// The loudest tone, between the analyser's steps, and its share of the power.
function tone() {
  analyser.getFloatFrequencyData(levels);
  const peak = levels.indexOf(Math.max(...levels));
  if (peak < 3 || levels[peak] < -80) return null;
  const [left, most, right] = levels.slice(peak - 1, peak + 2), power = (sum, level) => sum + 10 ** (level / 10);
  const at = peak + (left - right) / (left - 2 * most + right) / 2;
  return [at * context.sampleRate / analyser.fftSize, levels.slice(peak - 3, peak + 4).reduce(power, 0) / levels.reduce(power, 0)];
}
setInterval(async () => {
  const all = await connection.getStats();
  for (const entry of all.values()) {
    if (entry.type !== 'inbound-rtp') continue;
    const known = { codec: all.get(entry.codecId)?.mimeType ?? '', received: entry.packetsReceived, bytes: entry.bytesReceived, lost: entry.packetsLost, playout: entry.estimatedPlayoutTimestamp };
    rtc[entry.kind] = entry.kind !== 'video' ? known : { ...known, decoded: entry.framesDecoded, dropped: entry.framesDropped, freezes: entry.freezeCount,
      frozenSeconds: entry.totalFreezesDuration, nack: entry.nackCount, pli: entry.pliCount,
      bufferMs: Math.round(1000 * entry.jitterBufferDelay / entry.jitterBufferEmittedCount) };
  }
  rtc.tone = tone();
}, 200);
</script>"""
# A page that pushes: pictures with the clock (clockcode.py) and a tone, by WHIP.
WHIP_PAGE = b"""<!doctype html><canvas id="canvas" width="640" height="360"></canvas><video></video>
<script type="module">
const canvas = document.getElementById('canvas'), pen = canvas.getContext('2d', { alpha: false }), url = new URLSearchParams(location.search).get('url');
const rtc = window.rtc = { states: [] }, { width, height } = canvas, cell = width / 40, strip = height / 9;
window.said = [];
addEventListener('unhandledrejection', (event) => said.push(String(event.reason)));
let count = 0;
function crc8(code) {
  let crc = 0;
  for (const byte of [code >> 16 & 255, code >> 8 & 255, code & 255]) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = crc & 0x80 ? (crc << 1 ^ 7) & 255 : crc << 1;
  }
  return crc;
}
function paint() {
  const code = Date.now() % (1 << 24), bits = (value, length) => Array.from({ length }, (_, at) => value >> length - 1 - at & 1);
  [1, 0, 1, 0, ...bits(code, 24), ...bits(crc8(code), 8), 0, 1, 0, 1].forEach((bit, at) => {
    pen.fillStyle = bit ? '#fff' : '#000';
    pen.fillRect(at * cell, 0, cell, strip);
  });
  ['#f00', '#0f0', '#00f', '#808080'].forEach((colour, at) => {
    pen.fillStyle = colour;
    pen.fillRect(at * width / 4, strip, width / 4, height - 2 * strip);
  });
  pen.fillStyle = '#808080';
  pen.fillRect(0, height - strip, width, strip);
  pen.fillStyle = '#fff';
  pen.fillRect(count++ % 40 * cell, height - strip, cell, strip);
}
paint();
setInterval(paint, 40);
const context = new AudioContext({ sampleRate: 48000 }), tone = new OscillatorNode(context, { frequency: 440 }), out = context.createMediaStreamDestination();
tone.connect(new GainNode(context, { gain: 0.2 })).connect(out);
tone.start();
const connection = new RTCPeerConnection();
connection.onconnectionstatechange = () => rtc.states.push(connection.connectionState);
const sender = connection.addTransceiver(canvas.captureStream(25).getVideoTracks()[0], { direction: 'sendonly' });
connection.addTransceiver(out.stream.getAudioTracks()[0], { direction: 'sendonly' });
await connection.setLocalDescription();
const answer = await fetch(url, { method: 'POST', headers: { 'Content-Type': 'application/sdp' }, body: connection.localDescription.sdp });
const text = await answer.text();
Object.assign(rtc, { status: answer.status, location: answer.headers.get('Location'), refusal: answer.ok ? null : text });
if (answer.ok) await connection.setRemoteDescription({ type: 'answer', sdp: text });
window.obey = async () => { rtc.left = (await fetch(rtc.location, { method: 'DELETE' })).status; };
setInterval(async () => {
  for (const entry of (await connection.getStats()).values()) {
    if (entry.type === 'outbound-rtp') rtc[entry.kind] = { packets: entry.packetsSent, pli: entry.pliCount, nack: entry.nackCount, encoded: entry.framesEncoded, width: entry.frameWidth };
    if (entry.type === 'candidate-pair' && entry.nominated) rtc.bitrate = entry.availableOutgoingBitrate;
  }
}, 200);
</script>"""
# Put behind each page, which goes on as it is.
REPORTER = b"""<script>{
  const video = document.querySelector('video'), events = [];
  for (const name of ['playing', 'waiting', 'stalled', 'error', 'ended', 'pause', 'seeking', 'emptied'])
    video.addEventListener(name, () => events.push(name + '@' + video.currentTime.toFixed(2)));
  setInterval(() => fetch('/report', {method: 'POST', body: JSON.stringify({
    videoBytes: video.webkitVideoDecodedByteCount ?? video.videoWidth, audioBytes: video.webkitAudioDecodedByteCount ?? Number(video.mozHasAudio), textTracks: video.textTracks.length,
    received: video.srcObject?.getTracks().filter((track) => !track.muted).map((track) => track.kind) ?? [],
    width: video.videoWidth, time: video.currentTime, rate: video.playbackRate, ready: video.readyState,
    buffered: Array.from(video.buffered, (_, i) => [video.buffered.start(i), video.buffered.end(i)]),
    error: video.error ? video.error.message : '', said: window.said?.splice(0) ?? [], rtc: window.rtc ?? null, status: document.getElementById('status')?.textContent ?? '', events: events.splice(0)})}).then((answer) => answer.text()).then((order) => order && window.obey(order)), 200);
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
        # Said to the page in the answer to its next report.
        self.order = ""
        # Every text that the page has shown to its user, and every number of ranges that its buffer had.
        self.statuses = []
        owner = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                owner._answer(self)

            def do_POST(self):
                owner._take(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                order, owner.order = owner.order.encode(), ""
                self.send_response(200)
                self.send_header("Content-Length", str(len(order)))
                self.end_headers()
                self.wfile.write(order)

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
        elif name == "whep.html":
            page = WHEP_PAGE + REPORTER
        elif name == "whip.html":
            page = WHIP_PAGE + REPORTER
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
