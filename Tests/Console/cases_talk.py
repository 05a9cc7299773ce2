"""Listening in: what a browser plays of a room's talk is decoded and looked at."""
import json

from looks import case, opened
from server import Device, wait_for

# The loudest of these frequencies, in hertz and decibels: "440 -21.5". The context exists once per page.
LOUDEST = """(async () => {
    const audio = document.querySelector('#listen');
    if (!window.analyser) {
        const context = new AudioContext();
        await context.resume();
        window.analyser = context.createAnalyser();
        window.analyser.fftSize = 8192;
        window.analyser.smoothingTimeConstant = 0;
        context.createMediaElementSource(audio).connect(window.analyser);
        window.analyser.connect(context.destination);
    }
    const bins = new Float32Array(window.analyser.frequencyBinCount);
    window.analyser.getFloatFrequencyData(bins);
    const at = (hertz) => Math.max(...bins.slice(Math.floor(hertz / window.analyser.context.sampleRate * 8192) - 1).slice(0, 4));
    return JSON.stringify([440, 1000, 2000].map(at));
})()"""


def listeners(server):
    return [each for each in server.api("sessions?role=player")["list"] if any(play["stream"] == "talk/den/mix" for play in each["playing"])]


def hears(page, is_heard):
    """Waits until the tones at 440 and 1,000 Hz stand out, or until they are gone."""
    seen = []

    def look():
        seen[:] = [json.loads(page.run(LOUDEST))]
        low, high, other = (-200 if level is None else level for level in seen[0])
        return min(low, high) > other + 20 and min(low, high) > -60 if is_heard else max(low, high) < -60

    try:
        wait_for("the tones" if is_heard else "silence", look)
    except TimeoutError as error:
        raise AssertionError(f"{error}; 440, 1,000 and 2,000 Hz have {seen} dB") from None


# The room is closed while the browser watches and listens, which may try again once before it hears why.
@case(expected=("WebSocket", "410 (Gone)", "404", "503 (Service Unavailable)"))
def listen(server, browser, keep):
    with Device(server, "live/den"):
        wait_for("the room", lambda: server.is_live("den"))
        with Device(server, "talk/den/ann", audio="sine=frequency=440"), Device(server, "talk/den/ben", audio="sine=frequency=1000"):
            page = opened(server, browser)
            page.run("location.hash = '#/rooms/den'")
            page.click("Listen in")
            page.wait("document.querySelector('#listen')?.currentTime > 0", "the sound to play")
            first = page.run("document.querySelector('#listen').currentTime")
            page.wait(f"document.querySelector('#listen').currentTime > {first} + 2", "the sound to go on")
            page.wait("document.querySelector('#heard').textContent === 'Heard: ann, ben'", "who is heard")
            behind = page.run("(() => { const a = document.querySelector('#listen'); return a.buffered.end(a.buffered.length - 1) - a.currentTime; })()")
            assert behind < 3, f"{behind} s behind"
            hears(page, True)
            keep(page)
            session = wait_for("the session", lambda: listeners(server))[0]
            assert session["transport"] == "ws-fmp4", session
            # The volume is the page's own.
            page.run("""(() => { const range = document.querySelector('input[type=range]'); range.value = 0; range.dispatchEvent(new Event('input')); })()""")
            hears(page, False)
            page.run("""(() => { const range = document.querySelector('input[type=range]'); range.value = 1; range.dispatchEvent(new Event('input')); })()""")
            hears(page, True)
            page.click("Stop listening")
            wait_for("the session to be gone", lambda: not listeners(server))
            assert page.run("document.querySelector('#heard').textContent") == "" and server.api("rooms/den/talk")["listening"] == 0
            # An end by somebody else is no end for the listener; a page that is left is.
            page.click("Listen in")
            session = wait_for("the session", lambda: listeners(server))[0]
            server.api(f"sessions/{session['sessionId']}", method="DELETE")
            wait_for("another session", lambda: [each for each in listeners(server) if each["sessionId"] != session["sessionId"]])
            hears(page, True)
            page.run("location.hash = '#/rooms'")
            wait_for("the session to be gone", lambda: not listeners(server))
            # The room ends, and the listener with it.
            page.run("location.hash = '#/rooms/den'; delete window.analyser")
            page.click("Listen in")
            wait_for("the session", lambda: listeners(server))
            server.api("rooms/den/close", {})
            page.wait("document.querySelector('#listen')?.closest('section').hidden && !document.querySelector('#listen').src", "the end")
            wait_for("the session to be gone", lambda: not listeners(server))
