"""What is asked of WHEP besides what every player is: its sessions, how soon there is a picture, the tone, and what is refused."""

import json
import re
import time
import urllib.error
import urllib.request

import tone
from plan import whep_bounds
from processes import wait_for

# As Chromium makes them, with what matters of it.
OFFER = "\r\n".join(
    ["v=0", "o=- 3896574658517731798 2 IN IP4 127.0.0.1", "s=-", "t=0 0", "a=group:BUNDLE 0 1", "a=msid-semantic: WMS"]
    + ["m=video 9 UDP/TLS/RTP/SAVPF 96 97 102 103", "c=IN IP4 0.0.0.0", "a=ice-ufrag:HblJ", "a=ice-pwd:PWR8SeavYiGK9PgceEWHW/E2", "a=ice-options:trickle"]
    + ["a=fingerprint:sha-256 " + ":".join(f"{byte:02X}" for byte in range(32)), "a=setup:actpass", "a=mid:0", "a=recvonly", "a=rtcp-mux", "a=rtcp-rsize"]
    + ["a=rtpmap:96 VP8/90000", "a=rtcp-fb:96 nack", "a=rtpmap:97 rtx/90000", "a=fmtp:97 apt=96", "a=rtpmap:102 H264/90000", "a=rtcp-fb:102 nack"]
    + ["a=rtcp-fb:102 nack pli", "a=fmtp:102 level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f"]
    + ["a=rtpmap:103 rtx/90000", "a=fmtp:103 apt=102"]
    + ["m=audio 9 UDP/TLS/RTP/SAVPF 111", "c=IN IP4 0.0.0.0", "a=ice-ufrag:HblJ", "a=ice-pwd:PWR8SeavYiGK9PgceEWHW/E2", "a=ice-options:trickle"]
    + ["a=fingerprint:sha-256 " + ":".join(f"{byte:02X}" for byte in range(32)), "a=setup:actpass", "a=mid:1", "a=recvonly", "a=rtcp-mux"]
    + ["a=rtpmap:111 opus/48000/2", "a=fmtp:111 minptime=10;useinbandfec=1", ""]
)
VP8_OFFER = re.sub(r"a=(rtpmap|rtcp-fb|fmtp):10[23] .*\r\n", "", OFFER).replace(" 96 97 102 103\r\n", " 96 97\r\n")
FRAGMENT = "a=ice-ufrag:{}\r\na=ice-pwd:PWR8SeavYiGK9PgceEWHW/E2\r\nm=video 9 UDP/TLS/RTP/SAVPF 0\r\na=mid:0\r\n"
FRAGMENT += "a=candidate:1 1 udp 2130706431 192.0.2.9 54321 typ host\r\na=end-of-candidates\r\n"
TRICKLE = "application/trickle-ice-sdpfrag"
ORIGIN = "http://pages.example"


def call(url, method="POST", body=None, kind="application/sdp", **more):
    """An HTTP request: the status, the headers and the body of the answer."""
    headers = {**({"Content-Type": kind} if body is not None else {}), **{name.replace("_", "-"): value for name, value in more.items()}}
    request = urllib.request.Request(url, body.encode() if body is not None else None, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.headers, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers, error.read().decode()


def sessions(server, name):
    """The sessions that play a stream by WebRTC."""
    return [session for session in server.api(f"sessions?stream=live/{name}&role=player")["list"] if session["transport"] == "webrtc"]


def waiting(server):
    """The sessions by WebRTC that have been sent nothing yet."""
    return [session for session in server.api("sessions?role=player")["list"] if session["transport"] == "webrtc" and not session["bytesOut"]]


# --- A player


def judge(player, case, shape, server, name, outcome):
    """Of a player that plays well at this moment: how it began, what it hears, what its packets went through. Then it leaves."""
    limits = whep_bounds(case)
    wrong, notes = outcome.wrong, outcome.notes
    waited = player.process.waited()
    if case.scene != "before":
        first, age, ages = player.first_after_offer, age_at(player, limits.age_at), [age_at(player, second) for second in (1, 2, 4)]
        old = ", ".join("none" if age is None else f"{age:.2f}" for age in ages)
        notes.append(f"first picture {first * 1000:.0f} ms after the offer; age of the picture 1, 2 and 4 s after it: {old} s")
        if first - waited > limits.first:
            wrong.append(f"first picture {first:.2f} s after the offer, not {limits.first:g} s (the player waited {waited:.1f} s for a processor)")
        if age is None or age - waited > limits.age:
            wrong.append(f"{limits.age_at:g} s after the offer the picture was {'not there' if age is None else f'{age:.2f} s old'}, not {limits.age:g} s")
    longest, again = course(player)
    notes.append(f"the picture stood still for at most {longest:.2f} s")
    if longest > limits.still:
        wrong.append(f"the picture stood still for {longest:.2f} s, not {limits.still:g} (the player waited {waited:.1f} s for a processor)")
    # Of what was repaired.
    late = player.late_repairs if case.scene == "loss" else 0
    if again > late:
        wrong.append(f"{again} pictures were shown after newer ones")
    if shape.audio:
        judge_sound(player, limits, outcome)
    quality = player.quality()
    notes.append(", ".join(f"{name} {figure:g}" for name, figure in quality.items() if figure is not None))
    if case.scene == "loss":
        if not quality["nack"]:
            wrong.append("it never asked for a repeat, though packets were lost")
    elif case.scene == "join" and (quality["lost"] or quality["pli"] > 1):
        wrong.append(f"{quality['lost']} packets lost and {quality['pli']} requests for keyframes, on the loopback")
    if (quality.get("backward") or 0) > late:
        wrong.append(f"the times of {quality['backward']} pictures went back")
    if player.has_ended():
        wrong.append("its connection or a track has ended")
    leave(player, server, name, wrong)


def judge_sound(player, limits, outcome):
    """That what is heard at this moment is the device's tone."""
    heard = player.heard()
    if heard:
        outcome.notes.append(f"a tone of {heard[0]:.1f} Hz, {heard[1]:.0%} of the sound")
    if not heard or abs(heard[0] - tone.SENT) > 3 or heard[1] < limits.clean:
        outcome.wrong.append(f"no clean tone of {tone.SENT} Hz, but {heard and (round(heard[0], 1), round(heard[1], 2))}")


def course(player):
    """The longest time in seconds from one picture to the next that is newer, and how many were shown after newer ones."""
    newest, since, longest, again = None, None, 0.0, 0
    for when, age in player.shown_since(player.begin):
        if newest is None or when - age > newest:
            longest = max(longest, when - (since or when))
            newest, since = when - age, when
        else:
            again += 1
    return longest, again


def age_at(player, seconds):
    """How old the picture was that was shown so long after the offer; None when there was none yet."""
    at = player.offered_at + seconds
    before = [(when, age) for when, age in player.shown_since(player.begin) if when <= at]
    return before[-1][1] + at - before[-1][0] if before else None


def leave(player, server, name, wrong):
    """Ends the session as its client does."""
    count = len(sessions(server, name))
    if count != 1:
        wrong.append(f"{count} sessions of WebRTC are listed while one plays")
    player.leave()
    wait_for("the answer to DELETE", 5, lambda: player.left is not None)
    if player.left != 200:
        wrong.append(f"DELETE was answered with {player.left}, not 200")
    try:
        wait_for("the end of its session", 3, lambda: not sessions(server, name))
    except TimeoutError:
        wrong.append("its session is still listed 3 s after DELETE")


# --- What is refused


class Refusals:
    """Requests, and what they are answered with. `wrong` collects the answers that are not as they should be; the file has all."""

    def __init__(self, server, wrong, notes, path):
        self.server, self.wrong, self.notes, self.path = server, wrong, notes, path

    def url(self, name):
        return self.server.play_url("whep", name)

    def expect(self, what, condition, answer):
        if not condition:
            status, headers, text = answer
            self.wrong.append(f"{what}: {status} {dict(headers)} {text[:300]}")

    def refused(self, what, answer, status, rule=None, says=""):
        """A refusal in the API's form."""
        try:
            error = json.loads(answer[2])
        except ValueError:
            error = {}
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(f"{what}: {answer[0]} {dict(answer[1])} {answer[2]}\n")
        fits = answer[0] == status and (rule is None or error.get("error", {}).get("rule") == rule) and says in error.get("message", "")
        self.expect(f"{what} is not refused with {status}{f', rule {rule}' if rule else ''}{f', a message with {says!r}' if says else ''}", fits, answer)

    def offers(self, hevc, plain):
        """Offers that cannot be met, or read."""
        self.refused("HEVC", call(self.url(hevc), body=OFFER), 406, "unplayable", "its video is H265 of profile 1, and the client's codecs are vp8, h264")
        url = self.url(plain)
        answer = call(url, body=VP8_OFFER)
        self.refused("VP8 alone", answer, 406, says="its video is H264, and the client's codecs are vp8")
        # The stream may be called so.
        self.expect("sound is called a codec of video", "opus" not in answer[2].replace(plain, "").lower(), answer)
        self.refused("another Content-Type", call(url, body=OFFER, kind="application/json"), 415, says="application/sdp")
        self.refused("no SDP", call(url, body="This is no offer."), 400)
        self.refused("half an offer", call(url, body=OFFER[: OFFER.index("a=ice-ufrag")]), 400)
        self.refused("no body", call(url, body=""), 400)
        self.refused("1 MB", call(url, body=OFFER + "a=x-long:0123456789\r\n" * 50_000), 413)
        self.refused("GET", call(url, "GET"), 405)
        closed = f"{plain}-closed"
        self.server.create_room(closed)
        self.server.api(f"rooms/{closed}/close", {})
        self.refused("a closed room", call(f"{self.server.http_base}/whep/live/{closed}", body=OFFER), 410, "room_closed")

    def pages(self, name):
        """A page of another origin is let in as its browser asks for it."""
        asks = {"Origin": ORIGIN, "Access_Control_Request_Method": "POST", "Access_Control_Request_Headers": "content-type"}
        answer = call(self.url(name), "OPTIONS", **asks)
        status, headers, _ = answer
        methods, allowed = headers.get("Access-Control-Allow-Methods", ""), headers.get("Access-Control-Allow-Headers", "").lower()
        fits = status in (200, 204) and all(word in methods for word in ("POST", "PATCH", "DELETE")) and "content-type" in allowed and "authorization" in allowed
        self.expect("the preflight of POST", fits and headers.get("Access-Control-Allow-Origin") in ("*", ORIGIN), answer)
        answer = call(self.url(name), body=OFFER, Origin=ORIGIN)
        status, headers, text = answer
        exposed = headers.get("Access-Control-Expose-Headers", "")
        fits = status == 201 and headers.get("Access-Control-Allow-Origin") in ("*", ORIGIN) and all(word in exposed for word in ("Location", "ETag", "Link"))
        self.expect("the answer to a page's offer", fits and headers.get_content_type() == "application/sdp" and headers.get("ETag"), answer)
        self.expect("Location is no URL of the server", (headers.get("Location") or "").startswith(self.server.http_base + "/"), answer)
        for word in ("a=ice-lite", "a=setup:passive", "a=candidate:", "a=fingerprint:sha-256 ", "a=group:BUNDLE 0 1", "a=sendonly", "a=rtcp-mux"):
            self.expect(f"no {word} in the answer", word in text, answer)
        return headers.get("Location"), headers.get("ETag")

    def session(self, name):
        """What can be asked of a session's address."""
        location, _ = self.pages(name)
        if not location:
            return
        asks = {"Origin": ORIGIN, "Access_Control_Request_Method": "DELETE"}
        answer = call(location, "OPTIONS", **asks)
        self.expect("the preflight of DELETE", answer[0] in (200, 204) and "DELETE" in answer[1].get("Access-Control-Allow-Methods", ""), answer)
        answer = call(location, "PATCH", FRAGMENT.format("HblJ"), TRICKLE)
        self.expect("a candidate is not answered with 204", answer[0] == 204, answer)
        self.refused("a restart of ICE", call(location, "PATCH", FRAGMENT.format("Anew"), TRICKLE), 422)
        self.refused("a PATCH of another kind", call(location, "PATCH", OFFER), 415)
        # Not connected, and listed all the same.
        listed = waiting(self.server)
        if len(listed) != 1:
            self.wrong.append(f"{len(listed)} sessions are listed while one waits for its client")
        answer = call(location, "DELETE", Origin=ORIGIN)
        self.expect("DELETE is not answered with 200", answer[0] == 200 and answer[1].get("Access-Control-Allow-Origin"), answer)
        self.refused("a second DELETE", call(location, "DELETE"), 404)
        _, headers, _ = call(self.url(name), body=OFFER)
        self.server.api(f"sessions/{waiting(self.server)[-1]['sessionId']}", method="DELETE")
        self.refused("a session that an operator has ended", call(headers["Location"], "DELETE"), 404)
        try:
            wait_for("the end of all sessions", 3, lambda: not waiting(self.server))
        except TimeoutError:
            self.wrong.append("a session is still listed 3 s after its end")

    def forbidden(self, name, player):
        """A stream that is forbidden meanwhile ends for its players, who are told; and nobody is let in."""
        url = self.url(name)
        wait_for("a picture", 20, lambda: player.pictures or not player.is_running)
        begin = time.time()
        self.server.api(f"streams/live/{name}/forbid", {"seconds": 60, "reason": "a test"})
        try:
            wait_for("the end of a player of a forbidden stream", 5, player.has_ended)
            self.notes.append(f"a player knows {time.time() - begin:.1f} s after its stream is forbidden")
        except TimeoutError as error:
            self.wrong.append(f"{error}: {player.errors()[-300:]}")
        if sessions(self.server, name):
            self.wrong.append("the session of a forbidden stream is still listed")
        self.refused("a forbidden stream", call(url, body=OFFER), 403)

