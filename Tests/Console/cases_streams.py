"""Streams that are not well, viewers that are behind, and streams that change and go: what the console says of them."""
import contextlib
import json
import os
import sys
import time

from looks import BLUE, GREEN, RED, case, opened, see, visit
from peers import NarrowWay, SlowViewer
from server import Device, wait_for

# After this folder's own modules, of which some have names of theirs.
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "Players"))
from tools import Tools  # noqa: E402

NOISE = "testsrc2=size=320x180:rate=25"


def tile(room):
    return f"document.querySelector(\"a[href='#/rooms/{room}']\")"


# On a slow machine a keyframe every forty seconds is older than the cache: no picture of that stream then.
@case(expected=("404",), settings={"EARSHOT_ROOMS_POLICY_GRACE": "10m"})
def verdict(server, browser, keep):
    """Two ills, on the wall and on the rooms' pages, with values and advice."""
    steady = ["-b:v", "600k", "-minrate", "600k", "-maxrate", "600k", "-bufsize", "600k", "-nal-hrd", "cbr"]
    with NarrowWay(server.rtmp, 440_000) as way, Device(server, "live/narrow", NOISE, "sine", steady, to=way.address), \
            Device(server, "live/rare", extra=["-g", "1000", "-keyint_min", "1000"]), Device(server, "live/well") as well:
        page = opened(server, browser)
        page.wait(f"{tile('narrow')}?.innerText.includes('s of media arrive per second')", "the narrow uplink on the wall")
        words = page.run(f"{tile('narrow')}.innerText")
        assert "bad" in words and "Lower the bit rate" in words, words
        page.wait(f"{tile('rare')}?.innerText.includes('without a keyframe')", "the rare keyframes on the wall")
        words = page.run(f"{tile('rare')}.innerText")
        assert "degraded" in words and "Set the encoder's keyframe interval to 2 s" in words, words
        # Text of every stream's tile but the well one's.
        page.wait(f"{tile('well')}?.innerText.includes('good') && {tile('well')}.querySelector('.why').hidden", "the good verdict, without a reason")
        # Those that are not well are counted; pressed, the count puts the worst first, by the server's order.
        page.click("1 bad 1 degraded")
        page.wait("document.querySelector('select[name=sort]')?.value === 'verdict'", "the order")
        order = "[...document.querySelectorAll('.wall a')].map((e) => e.hash.slice(8)).join()"
        page.wait(f"{order} === 'narrow,rare,well'", "the worst first")
        page.wait("document.querySelector('[role=status]').textContent === '3 live'", "their number")
        keep(page)
        # A room whose push is cut is worse than all of them, by the streams' order and by the rooms'.
        well.process.kill()
        page.wait(f"{order} === 'well,narrow,rare' && {tile('well')}.innerText.includes('The push was interrupted')", "the interrupted one before the worst")
        page.wait("document.querySelector('[role=status]').textContent === '2 live · 1 interrupted'", "its number beside theirs")
        keep(page, "verdict-interrupted")
        visit(page, "#/rooms?state=&sort=verdict")
        page.wait(f"{order} === 'well,narrow,rare'", "the same among rooms in all states")
        # Found rooms are sorted, too.
        page.run("(() => { const s = document.querySelector('#search'); s.value = 'rare'; s.dispatchEvent(new Event('input')); })()")
        page.wait(f"{order} === 'rare'", "the found one")
        visit(page, "#/rooms/narrow")
        page.wait("document.querySelector('.reasons')?.innerText.includes('media_behind_clock')", "the reason on the page")
        words = page.run("document.querySelector('.reasons').innerText")
        assert "Lower the bit rate" in words and "measured 0." in words and "expected" in words, words
        page.wait("document.querySelector('.head').innerText.includes('bad')", "the verdict beside the name")
        page.wait("/Player buffer .* The encoder itself is behind/.test(document.querySelector('#delay').innerText)", "what the player's buffer does not hold")
        keep(page, "verdict-room")
        # The same in Chinese: no sentence of it is English.
        page.run("(() => { const s = document.querySelector('#language'); s.value = 'zh'; s.dispatchEvent(new Event('change')); })()")
        page.wait("document.querySelector('.reasons')?.innerText.includes('秒的媒体')", "the reason in Chinese")
        words = page.run("document.querySelector('.reasons').innerText")
        assert "请降低码率" in words and "uplink" not in words, words
        page.scheme("dark")
        keep(page, "verdict-chinese")
        visit(page, "#/rooms")
        page.wait(f"{tile('rare')}?.innerText.includes('关键帧')", "the reason on the wall in Chinese")
        page.wait("document.querySelector('.head').innerText.includes('1 个差 1 个一般')", "the number of them in Chinese")
        page.size(375, 740, True)
        keep(page, "verdict-phone")


@case(settings={"EARSHOT_ROOMS_POLICY_GRACE": "10m"})
def waiting(server, browser, keep):
    """A room whose push was cut stands among the most watched by the viewers that wait in it. Sorted by verdict, the wall asks once for the worst."""
    with contextlib.ExitStack() as stack:
        devices = {name: stack.enter_context(Device(server, f"live/{name}")) for name in ("busy", "cut", "quiet")}
        for name in devices:
            wait_for(name, lambda name=name: server.is_live(name))
        for room in ("busy", "busy", "cut"):
            stack.enter_context(SlowViewer(server.http, f"/live/{room}.flv", 10_000_000))
        devices["cut"].process.kill()
        page = opened(server, browser)
        visit(page, "#/rooms?sort=viewers")
        order = "[...document.querySelectorAll('.wall a')].map((e) => e.hash.slice(8)).join()"
        page.wait(f"{order} === 'busy,cut,quiet' && {tile('cut')}.innerText.includes('The push was interrupted')", "the interrupted one between the others")
        assert "1 viewer " in page.run(f"{tile('cut')}.innerText"), page.run(f"{tile('cut')}.innerText")
        page.wait("document.querySelector('[role=status]').textContent === '2 live · 1 interrupted'", "its number beside theirs")
        keep(page)
        visit(page, "#/rooms?sort=verdict")
        page.wait(f"{order} === 'cut,busy,quiet'", "the interrupted one before the others")
        asked = "performance.getEntriesByType('resource').filter((each) => each.name.includes('sort=verdict')).length"
        page.run("performance.clearResourceTimings()")
        turns = page.wait("(() => { const n = performance.getEntriesByType('resource').filter((each) => each.name.includes('state=interrupted')).length; return n > 2 && n; })()", "three turns")
        assert page.run(asked) <= turns + 1, f"{page.run(asked)} lists of the worst in {turns} turns"


@case()
def note(server, browser, keep):
    """The notes on a good stream stand on its tile, as dim as the facts, and in Chinese."""
    with Device(server, "live/late", video=["-c:v", "libx264", "-preset", "ultrafast", "-bf", "2", "-g", "25", "-pix_fmt", "yuv420p"], source=NOISE):
        page = opened(server, browser)
        page.wait(f"{tile('late')}?.querySelector('.why').innerText.includes('B-frames') && {tile('late')}.innerText.includes('good')", "the note beside the good verdict")
        colours = json.loads(page.run(f"JSON.stringify(['.why', '.facts'].map((part) => getComputedStyle({tile('late')}.querySelector(part)).color))"))
        assert colours[0] == colours[1], colours
        assert page.run(f"{tile('late')}.className.trim()") == "tile good", "a note makes no ill"
        keep(page)
        page.run("(() => { const s = document.querySelector('#language'); s.value = 'zh'; s.dispatchEvent(new Event('change')); })()")
        page.wait(f"{tile('late')}?.querySelector('.why.dim')?.innerText.includes('B 帧')", "the note in Chinese")


@case(settings={"EARSHOT_RELAY_MAX_BEHIND": "5m"})
def behind(server, browser, keep):
    """The page names a viewer that is behind, by how much, and shows its trace."""
    busy = ["-b:v", "3000k", "-minrate", "3000k", "-maxrate", "3000k", "-bufsize", "500k", "-nal-hrd", "cbr"]
    with Device(server, "live/cam", "testsrc2=size=640x360:rate=25", extra=busy):
        wait_for("the room", lambda: server.is_live("cam"))
        with SlowViewer(server.http, "/live/cam.flv", 10_000_000, agent="quick-viewer"), SlowViewer(server.http, "/live/cam.flv", 8_000):
            page = opened(server, browser)
            page.wait(f"/worst [0-9.]+ s behind/.test({tile('cam')}?.innerText)", "the delay on the wall")
            page.wait(f"{tile('cam')}?.innerText.includes('a viewer is too slow for it')", "whose fault it is")
            assert "1 slow viewer " in page.run(f"{tile('cam')}.innerText"), page.run(f"{tile('cam')}.innerText")
            keep(page, "behind-wall")
            visit(page, "#/rooms/cam")
            row = "[...document.querySelectorAll('tbody tr')].find((e) => e.innerText.includes('slow-viewer'))"
            page.wait(f"{row} && /^[0-9.]+ s/.test({row}.cells[3].innerText) && Number({row}.cells[4].innerText.replaceAll(',', '')) > 0", "the delay and the skipped frames")
            page.wait(f"{row}.nextElementSibling?.innerText.includes('Other viewers get this stream in time: it is the network or the player of this one.')", "why it is behind")
            assert page.run(f"/^Slow: takes .*bit.s of .*bit.s, [0-9,]+ frames skipped/.test({row}.nextElementSibling.innerText)"), page.run(f"{row}.nextElementSibling.innerText")
            page.wait("document.querySelector('main').innerText.includes('The stream is well. Slow viewers: 1, see below.')", "the verdict panel's word of it")
            # The badge beside the verdict leads to the row.
            page.click("1 slow viewer")
            page.wait(f"{row}.contains(document.activeElement)", "the row of the slow viewer")
            keep(page, "behind-row")
            page.run("document.activeElement.blur()")
            cells = json.loads(page.run(f"JSON.stringify([...{row}.cells].map((e) => e.innerText))"))
            assert cells[2].startswith("http-flv") and float(cells[3].split()[0]) >= 1, cells
            other = "[...document.querySelectorAll('tbody tr')].find((e) => e.innerText.includes('quick-viewer'))"
            skipped = [int(page.run(f"{each}.cells[4].innerText").replace(",", "")) for each in (other, row)]
            assert skipped[0] < skipped[1], f"the other viewer has its frames: {skipped}"
            assert page.run("document.querySelector('tbody tr').innerText.includes('slow-viewer')"), "the worst one is the first"
            page.click("Trace", within=row)
            page.wait("document.querySelector('dialog[open] pre')?.innerText.includes('/live/cam.flv, 200')", "its trace")
            keep(page)
            page.click("Close", within="document.querySelector('dialog')")
            # If the audience is longer than the list, the list has its worst viewers, not the first ones.
            page.run("""(() => { const real = window.real = fetch; window.fetch = (address, ...more) => real(String(address).replace(/(sessions.*limit=)100/, '$11'), ...more); })()""")
            page.wait(f"{row} && !{other} && /and [0-9]+ more/.test({row}.closest('section').innerText)", "the slow viewer alone on a list of one")
            page.wait("document.querySelector('main').innerText.includes('Slow viewers: 1, see below.')", "the count of it")
            keep(page, "behind-list")
            page.run("(() => { window.fetch = window.real; })()")
        # Both are gone, and the page says who they were and why they left.
        left = "[...document.querySelectorAll('h3 + .scroll tr')].filter((e) => e.cells[3].innerText.length > 10).map((e) => e.innerText)"
        page.wait(f"['slow-viewer', 'quick-viewer'].every((name) => {left}.some((text) => text.includes(name)))", "who has left, and why")
        keep(page, "left")


@case(settings={"EARSHOT_RELAY_MAX_BEHIND": "2s"})
def cutViewer(server, browser, keep):
    """A viewer that was cut stays on the list of those that left, with the reason, however many leave by themselves after it."""
    busy = ["-b:v", "3000k", "-minrate", "3000k", "-maxrate", "3000k", "-bufsize", "500k", "-nal-hrd", "cbr", "-g", "250"]
    with Device(server, "live/cam", "testsrc2=size=640x360:rate=25", extra=busy):
        wait_for("the room", lambda: server.is_live("cam"))
        with SlowViewer(server.http, "/live/cam.flv", 8_000):
            wait_for("the cut", lambda: server.api("stats/plays?reason=too_slow")["list"])
        for _ in range(7):
            with SlowViewer(server.http, "/live/cam.flv", 10_000_000, agent="leaver"):
                time.sleep(0.3)
        wait_for("the others to leave", lambda: len([each for each in server.api("stats/plays")["list"] if each["client"] == "leaver"]) == 7)
        page = opened(server, browser)
        visit(page, "#/rooms/cam")
        row = "[...document.querySelectorAll('h3 + .scroll tbody tr')].find((each) => each.innerText.includes('too_slow'))"
        page.wait(f"{row}?.nextElementSibling.innerText.includes('further than the setting relay.maxBehind allows')", "why it was cut")
        assert page.run("document.querySelectorAll('h3 + .scroll tbody tr:not(.note)').length") == 5, "five that left"
        page.run(f"{row}.scrollIntoView({{block: 'center'}})")
        keep(page)


@case(expected=("WebSocket", "404 (Not Found)", "503 (Service Unavailable)"))
def changes(server, browser, keep):
    """The stream goes, comes back as others, ends with its room, and begins again: the preview follows without a hand."""
    server.api("rooms", {"roomId": "cam", "policy": {"grace": 20}})
    with Device(server, "live/cam", audio="sine=frequency=440"):
        wait_for("the room", lambda: server.is_live("cam"))
        page = opened(server, browser)
        # By MediaSource: WebRTC has a case of its own.
        page.run("delete window.RTCPeerConnection")
        page.run("window.WebSocket = class extends WebSocket { constructor(url) { super(url); if (url.includes('.mp4')) window.media = this; } }; 0")
        visit(page, "#/rooms/cam")
        see(page, "#preview", RED)
        assert page.run("document.querySelector('#preview').videoWidth") == 320
    page.wait("document.querySelector('.player p').textContent.includes('Waiting for the device')", "word of the pause")
    page.wait("document.querySelector('.head').innerText.includes('interrupted')", "the state")
    keep(page)
    main = ["-tune", "film", "-profile:v", "main", "-bf", "0", "-b:v", "300k"]
    with Device(server, "live/cam", "color=c=blue:size=640x360:rate=15", "sine=frequency=880", main):
        see(page, "#preview", BLUE)
        page.wait("document.querySelector('#preview').videoWidth === 640", "the other size")
        page.wait("document.querySelector('.player p').textContent === ''", "the word to go")
        page.wait("document.body.innerText.includes('640×360')", "the other size in words")
    # Only sound: the preview goes on with it.
    with Device(server, "live/cam", None, "sine=frequency=440"):
        page.wait("document.querySelector('#preview').videoWidth === 0 && !document.querySelector('#preview').paused", "sound alone")
        begun = page.run("document.querySelector('#preview').currentTime")
        page.wait(f"document.querySelector('#preview').currentTime > {begun} + 1", "the sound to go on")
    # Chromium plays no MP3 in MP4: it gets AAC.
    with Device(server, "live/cam", audio="sine=frequency=440", extra=["-c:a", "libmp3lame"]):
        see(page, "#preview", RED)
    words = "document.querySelector('.player p').textContent"
    with Device(server, "live/cam", "color=c=green:size=320x180:rate=25"):
        see(page, "#preview", GREEN)
        # A codec that this browser does not play is named, and stays named while the former picture, slow here, has something left to play.
        page.run("(() => { const video = document.querySelector('#preview'); video.playbackRate = video.defaultPlaybackRate = 0.1; Object.defineProperty(video, 'playbackRate', {set() {}, configurable: true}); })()")
        page.wait("(() => { const video = document.querySelector('#preview'); const { buffered } = video; return buffered.length && buffered.end(buffered.length - 1) > video.currentTime + 1; })()", "a second of media ahead")
        page.run("media.onmessage({data: JSON.stringify({mimeType: 'video/mp4; codecs=\"mp4v.20.9\"'})})")
        time.sleep(1)
        assert "cannot play" in page.run(words), page.run(words)
        page.run("delete document.querySelector('#preview').playbackRate")
    hevc = ["-c:v", "libx265", "-preset", "ultrafast", "-x265-params", "log-level=error:bframes=0", "-g", "25", "-pix_fmt", "yuv420p"]
    with Device(server, "live/cam", audio="sine=frequency=440", video=hevc, program=Tools().current_ffmpeg):
        page.wait(f"/cannot play video.mp4; codecs=.hvc1/.test({words})", "word of the codec")
    # Another one, by Enhanced RTMP.
    av1 = ["-c:v", "libsvtav1", "-preset", "12", "-g", "25", "-pix_fmt", "yuv420p"]
    with Device(server, "live/cam", audio="sine=frequency=440", video=av1, program=Tools().current_ffmpeg):
        see(page, "#preview", RED)
        page.wait("document.body.innerText.includes('AV1')", "the other codec in words")
        begun = page.run("document.querySelector('#preview').currentTime")
        page.wait(f"document.querySelector('#preview').currentTime > {begun} + 1", "the other codec to go on")
        keep(page, "av1")
    # The room's end, and its next life.
    server.api("rooms/cam/expire", {}, "POST")
    page.wait("document.querySelector('.head').innerText.includes('expired')", "the end")
    page.wait("document.querySelector('.player p').textContent === 'No picture'", "word of the end")
    with Device(server, "live/cam"):
        see(page, "#preview", RED)


@case(expected=("WebSocket",))
def managedSource(server, browser, keep):
    """The preview plays where there is only a ManagedMediaSource, as on iPhones, and says so where there is neither. This browser has none: its
    MediaSource stands for it, and opens only when the element cannot be played elsewhere."""
    with Device(server, "live/cam", audio="sine=frequency=440"):
        wait_for("the room", lambda: server.is_live("cam"))
        page = opened(server, browser)
        page.run("delete window.RTCPeerConnection")
        page.run("""(() => {
            const Real = MediaSource, source = Object.getOwnPropertyDescriptor(HTMLMediaElement.prototype, 'src');
            delete window.MediaSource;
            window.made = 0;
            window.ManagedMediaSource = class extends Real { constructor() { super(); window.made += 1; } };
            Object.defineProperty(HTMLMediaElement.prototype, 'src', { ...source, set(address) { if (this.disableRemotePlayback) source.set.call(this, address); } });
        })()""")
        visit(page, "#/rooms/cam")
        see(page, "#preview", RED)
        begun = page.run("document.querySelector('#preview').currentTime")
        page.wait(f"document.querySelector('#preview').currentTime > {begun} + 1", "the picture to go on")
        assert page.run("window.made") >= 1, "another source"
        keep(page)
        visit(page, "#/rooms")
        page.run("delete window.ManagedMediaSource")
        visit(page, "#/rooms/cam")
        page.wait("document.querySelector('.player p')?.textContent === 'This browser has no MediaSource.'", "why there is no picture")


@case(expected=("406 (Not Acceptable)",))
def webRTC(server, browser, keep):
    """The preview plays by WebRTC, over a device's return and another size, also a stream with B-frames, of which the page says what is done; where the
    browser has no WebRTC it plays by the WebSocket."""
    def transports():
        return [session["transport"] for session in server.api("sessions?role=player")["list"]]

    with Device(server, "live/cam", audio="sine=frequency=440"):
        wait_for("the room", lambda: server.is_live("cam"))
        page = opened(server, browser)
        visit(page, "#/rooms/cam")
        see(page, "#preview", RED)
        assert transports() == ["webrtc"], transports()
        keep(page)
    with Device(server, "live/cam", "color=c=blue:size=640x360:rate=15", "sine=frequency=440"):
        see(page, "#preview", BLUE)
        page.wait("document.querySelector('#preview').videoWidth === 640", "the other size")
        assert transports() == ["webrtc"], transports()
    ordinary = ["-c:v", "libx264", "-preset", "veryfast", "-bf", "2", "-g", "25", "-pix_fmt", "yuv420p"]
    with Device(server, "live/other", "color=c=green:size=320x180:rate=25", video=ordinary):
        wait_for("the other room", lambda: server.is_live("other"))
        visit(page, "#/rooms/other")
        see(page, "#preview", GREEN)
        assert transports() == ["webrtc"], transports()
        page.wait("document.body.textContent.includes('encoded anew for WebRTC')", "what is done with its pictures")
        visit(page, "#/rooms")
        page.run("window.RTCPeerConnection = undefined")
        visit(page, "#/rooms/other")
        see(page, "#preview", GREEN)
        wait_for("the WebSocket alone", lambda: transports() == ["ws-fmp4"])
    visit(page, "#/rooms")
    wait_for("the preview's end", lambda: not transports())
