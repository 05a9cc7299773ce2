"""Runs cases, and says what came of each."""

import contextlib
import dataclasses
import os
import shutil
import signal
import statistics
import time
import traceback

import clockcode
import plan
import whep
from lossy import LossyNetwork
from obs import OBSPublisher
from players import PLAYERS
from processes import wait_for
from publishers import ChromiumPublisher, FFmpegPublisher
from servers import Earshot, NginxRTMP
from shapes import SHAPES


@dataclasses.dataclass
class Outcome:
    """The result of one case. `wrong` is empty when all is right; `skipped` says why it was not run."""

    case: plan.Case
    tracks: list[str] | None = None
    first: float | None = None
    age: float | None = None
    rate: float | None = None
    wrong: list[str] = dataclasses.field(default_factory=list)
    # More figures, for the reader.
    notes: list[str] = dataclasses.field(default_factory=list)
    skipped: str | None = None
    folder: str | None = None


class Failure(Exception):
    """Why a case cannot go on."""


class Suite:
    """The servers, the pushes that cases share, and the cases. Use it as a context."""

    # After the first picture until its age is judged, and the time over which it is.
    SETTLE, WINDOW, CATCH_UP = 6.0, 3.0, 15.0
    # Bits a second of a network that takes sound, but not the pictures: what fills the stream up to its rate is left out by WebRTC.
    NARROW = 110_000
    # HLS players find their distance only while they play.
    SETTLE_HLS = 9.0
    # Of a picture in between; a busy machine is late by less.
    STANDSTILL = 1.5
    # Until a case with an event in its push (sound, size, wrap) is judged, after the event.
    AFTER_EVENT = 7.0
    # Seconds from a push's start to the query of its verdict: a few of OBS's groups of pictures, so that the keyframe interval is known.
    JUDGED_AFTER = 30.0

    def __init__(self, binary, folder, tools, keep=False):
        self.binary, self.folder, self.tools, self.keep = binary, folder, tools, keep
        self.servers = {}
        self.shared = None
        self.shared_key = None
        self.count = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._end_shared()
        for server in self.servers.values():
            server.__exit__()

    def run(self, case):
        """One case from start to end; an error of any kind is its outcome."""
        outcome = Outcome(case)
        player_class, shape = PLAYERS[case.player], SHAPES[case.shape]
        outcome.skipped = player_class.missing(self.tools) or (NginxRTMP.missing() if case.server != "earshot" else None)
        if outcome.skipped:
            return outcome
        self.count += 1
        folder = os.path.join(self.folder, f"{self.count:03}-{case.name.replace('/', '-')}")
        os.makedirs(folder)
        try:
            server = self._server(case.server)
            with contextlib.ExitStack() as ending:
                play = {"refused": self._be_refused, "unsupported": self._lack_codec}.get(case.scene, self._play)
                play(case, shape, server, player_class, folder, outcome, ending)
            if not server.is_running:
                raise Failure("the server ended")
        except (Failure, TimeoutError) as error:
            outcome.wrong.append(str(error))
        except Exception as error:  # One case's error must not cost the others an hour.
            outcome.wrong.append(f"{type(error).__name__}: {error}")
            with open(os.path.join(folder, "error.txt"), "w", encoding="utf-8") as file:
                traceback.print_exc(file=file)
        if not self._server_runs(case.server):
            self.servers.pop(case.server).__exit__()
        if outcome.wrong or self.keep:
            outcome.folder = folder
        else:
            shutil.rmtree(folder, ignore_errors=True)
        return outcome

    # --- Servers and pushes

    def _server(self, name):
        if name not in self.servers:
            self.servers[name] = Earshot(self.binary, self.folder) if name == "earshot" else NginxRTMP(self.folder)
        return self.servers[name]

    def _server_runs(self, name):
        return name not in self.servers or self.servers[name].is_running

    def _end_shared(self):
        if self.shared:
            self.shared[0].stop()
        self.shared = self.shared_key = None

    def _push(self, case, shape, server, folder, ending):
        """The running push that a case plays, and its stream's name."""
        if case.push and case.push == self.shared_key and self.shared[0].is_running:
            return self.shared
        # One at a time: the machine has other things to do.
        self._end_shared()
        # A room's id, too.
        name = f"{case.shape.replace('^', '-').replace('.', '-')}-{self.count}"
        owner = self.folder if case.push else folder
        publisher = self._publish(case, shape, self._push_url(server, name, shape), owner, f"push-{name}")
        if case.push:
            self.shared, self.shared_key = (publisher, name), case.push
        else:
            ending.callback(publisher.stop)
        self._wait_until_live(server, publisher, name)
        return publisher, name

    @staticmethod
    def _push_url(server, name, shape):
        return server.whip_url(name, signed=shape.device == "whip-page") if shape.device.startswith("whip") else server.push_url(name)

    def _publish(self, case, shape, url, folder, label):
        device = {"obs": OBSPublisher, "whip-page": ChromiumPublisher}.get(shape.device, FFmpegPublisher)
        if shape.device == "obs":
            folder = os.path.join(folder, label)
            os.makedirs(folder, exist_ok=True)
        return device(shape, url, folder, self.tools, label)

    def _wait_until_live(self, server, publisher, name):
        def is_live():
            if not publisher.is_running:
                raise Failure(f"the device ended: {publisher.errors()}")
            return not isinstance(server, Earshot) or server.is_live(name)

        wait_for("the stream", 20, is_live)

    # --- A case

    def _play(self, case, shape, server, player_class, folder, outcome, ending):
        limits = plan.bounds(case, shape)
        if case.scene == "before":
            name = f"before-{self.count}"
            self._end_shared()
            if case.protocol != "rtmp":
                # HTTP holds a request for a room that waits for its device; and pages' URLs are signed for one.
                server.create_room(name)
            player = player_class(server.play_url(case.protocol, name), folder, shape, self.tools)
            ending.callback(player.stop)
            time.sleep(3)
            if case.protocol == "whep":
                wait_for("the answer to an offer before there is a device", 10, lambda: player.status)
                self._expect(outcome, player.status == 201, f"an offer before there is a device is answered with {player.status}")
            publisher = self._publish(case, shape, self._push_url(server, name, shape), folder, "push")
            ending.callback(publisher.stop)
            begin = publisher.begin
        else:
            publisher, name = self._push(case, shape, server, folder, ending)
            self._wait_to_join(publisher, case, shape)
            url = server.play_url(case.protocol, name)
            if case.scene in ("loss", "narrow", "tcp"):
                network = ending.enter_context(LossyNetwork(server.http_base, has_udp=case.scene != "tcp", has_luck=case.scene == "loss"))
                url = network.url(url)
                if network.has_udp:
                    ending.callback(lambda: outcome.notes.append(str(network)))
            player = player_class(url, folder, shape, self.tools)
            ending.callback(player.stop)
            begin = player.begin
        ending.callback(self._save_picture, player, folder, outcome)
        if not shape.video:
            self._judge_sound(player, shape, limits, outcome)
            if case.protocol == "whep":
                whep.judge_sound(player, plan.WHEP_BOUNDS["join"], outcome)
                whep.leave(player, server, name, outcome.wrong)
            return
        # Longer than allowed, so that the figure can be reported. The other server waits for a keyframe.
        patience = limits.first + 12 + (shape.gop_seconds if case.server != "earshot" else 0)
        with contextlib.suppress(TimeoutError):
            wait_for("the first picture", patience, lambda: player.pictures or not player.is_running)
        if not player.pictures:
            how = "" if player.is_running else "; it has ended"
            raise Failure(f"no picture within {patience:g} s{how}: {self._last_words(player)}")
        outcome.first = player.pictures[0][0] - begin
        self._in_time(outcome, player, outcome.first, limits.first, "first picture after {:.1f} s")
        if case.scene in ("cut", "asleep"):
            time.sleep(4)
            self._disturb(case, server, player, outcome)
        elif case.scene == "narrow":
            time.sleep(4)
            self._narrow(network, player, server, name, outcome)
        elif case.scene == "stay":
            # To the end of the group, in which a page that removes a part of it would stop.
            time.sleep(shape.gop_seconds * 1.2)
            self._judge_standstill(player, outcome)
        elif case.scene == "return":
            time.sleep(4)
            publisher = self._drop_and_return(case, shape, server, name, publisher, player, folder, ending, outcome)
        else:
            event = max(shape.audio_delay, shape.second_after, 12 if shape.offset_ms else 0)
            settle = self.SETTLE_HLS if case.protocol in plan.HLS else self.SETTLE
            time.sleep(max(settle, publisher.begin + event + self.AFTER_EVENT - time.time() if event else 0))
            if case.protocol == "mp4" and shape.second_size:
                player = self._ask_again(player, player_class, folder, ending, outcome)
        if case.protocol == "page-ws":
            self._let_catch_up(player, limits)
        elif case.player == "chromium" and case.protocol in plan.HLS and shape.gop_seconds > 2:
            # It stands still until it is far enough behind for whole segments.
            self._let_run(player, 0.9 * shape.rate, 3 * shape.gop_seconds)
        # A push with a variable rate sends 12.
        least = 8 if shape.is_variable else shape.rate * plan.least_rate(case, player)
        self._let_run(player, least, self.CATCH_UP)
        self._judge_picture(player, shape, least, limits, outcome)
        self._expect(outcome, publisher.is_running, "the device ended")
        if shape.device == "obs" and case.server == "earshot":
            self._expect_good(server, publisher, name, outcome)
        if case.player in ("page", "whepPage", "firefoxPage"):
            self._judge_page(player.pages, case, outcome)
        if case.protocol == "whep":
            whep.judge(player, case, shape, server, name, outcome)

    def _be_refused(self, case, shape, server, player_class, folder, outcome, ending):
        """A stream that cannot be played, one that can with requests that cannot be met, and one that is forbidden while it plays."""
        refusals = whep.Refusals(server, outcome.wrong, outcome.notes, os.path.join(folder, "answers.txt"))
        _, name = self._push(case, shape, server, folder, ending)
        plain = f"{name}-plain"
        publisher = self._publish(case, SHAPES["plain"], server.push_url(plain), folder, "plain")
        ending.callback(publisher.stop)
        self._wait_until_live(server, publisher, plain)
        refusals.offers(name, plain)
        refusals.session(plain)
        player = player_class(server.play_url(case.protocol, plain), folder, shape, self.tools)
        ending.callback(player.stop)
        refusals.forbidden(plain, player)

    def _lack_codec(self, case, shape, server, player_class, folder, outcome, ending):
        """A player that has no codec for the stream's pictures is told which it lacks, and leaves nothing behind."""
        _, name = self._push(case, shape, server, folder, ending)
        player = player_class(server.play_url(case.protocol, name), folder, shape, self.tools)
        ending.callback(player.stop)
        wait_for("the answer to its offer", 20, lambda: player.status)
        outcome.notes.append(f"{player.status}: {player.refusal}")
        told = player.status == 406 and "H264" in player.refusal and "vp8" in player.refusal
        self._expect(outcome, told, f"it was answered with {player.status}: {player.refusal}")
        self._expect(outcome, not whep.sessions(server, name), "a session is left")

    def _narrow(self, network, player, server, name, outcome):
        """Too narrow for all of the pictures: their sound goes on, and they come back once there is room."""

        def play():
            return whep.sessions(server, name)[0]["playing"][0]

        begin = time.time()
        network.rate = self.NARROW
        wait_for("less than all", 40, lambda: play()["line"]["sends"] != "all")
        outcome.notes.append(f"gets {play()['line']['sends']} after {time.time() - begin:.0f} s at {self.NARROW // 1000} kbit/s")
        self._expect(outcome, play()["isSlow"] and play()["framesSkipped"], f"it is not listed as slow: {play()}")
        # What stood in the queue has gone.
        time.sleep(4)
        whep.judge_sound(player, plan.WHEP_BOUNDS["narrow"], outcome)
        begin = time.time()
        network.rate = None
        wait_for("the pictures", 90, lambda: play()["line"]["sends"] == "all")
        outcome.notes.append(f"all of it again {time.time() - begin:.0f} s after there was room")
        # From the next keyframe on, and until the player trusts its network again.
        time.sleep(10)

    def _judge_standstill(self, player, outcome):
        """Since the picture moves, it has never stood still."""
        shown = [when for when, _ in player.shown_since(player.pictures[0][0] + 2)]
        longest = max((then - when for when, then in zip(shown, shown[1:])), default=float("inf"))
        self._expect(outcome, longest <= self.STANDSTILL, f"the picture stood still for {longest:.1f} s")

    def _expect_good(self, server, publisher, name, outcome):
        """The server finds no fault with a real encoder that has pushed for a while, with settings that it has at first."""
        time.sleep(max(0, publisher.begin + self.JUDGED_AFTER - time.time()))
        health = server.api(f"streams/live/{name}")["stream"]["health"]
        self._expect(outcome, health["verdict"] == "good", f"the server's verdict of the push: {health['verdict']}, {health['reasons']}")

    def _wait_to_join(self, publisher, case, shape):
        """Until the stream has run for a while, and then to the middle or the beginning of a group of pictures: a join's figures depend on that."""
        if case.scene == "stay":
            return
        if case.push is None and (shape.audio_delay or shape.second_after or shape.offset_ms):
            time.sleep(max(0, publisher.begin + 3 - time.time()))
            return
        group = shape.gop_seconds
        running = time.time() - publisher.begin
        at = max(running, group + 2)
        # A browser takes about a second to start.
        at += ((-1.1 if case.scene == "early" else group / 2) - at) % group
        time.sleep(at - running)

    def _ask_again(self, player, player_class, folder, ending, outcome):
        """A body of MP4 has one beginning: with another it ends in good order, and whoever asks again gets the new one."""
        self._expect(outcome, not player.is_running, "the body did not end where the pictures became others")
        seconds = len(player.pictures) / player.shape.rate
        self._expect(outcome, seconds > player.shape.second_after - 5, f"only {seconds:.1f} s of pictures before it ended")
        folder = os.path.join(folder, "again")
        os.makedirs(folder)
        player = player_class(player.url, folder, player.shape, self.tools)
        ending.callback(player.stop)
        time.sleep(self.SETTLE)
        if not player.pictures:
            raise Failure(f"no picture when asked for again: {self._last_words(player)}")
        return player

    def _drop_and_return(self, case, shape, server, name, publisher, player, folder, ending, outcome):
        publisher.kill()
        time.sleep(5)
        publisher = self._publish(case, shape, self._push_url(server, name, shape), folder, "again")
        ending.callback(publisher.stop)
        begin = publisher.begin

        def is_back():
            return any(age < when - begin for when, age in player.shown_since(begin))

        try:
            wait_for("a picture of the device that came back", 25, is_back)
        except TimeoutError as error:
            raise Failure(f"{error}: {self._last_words(player)}") from None
        time.sleep(max(self.SETTLE, begin + 10 - time.time()))
        return publisher

    def _let_catch_up(self, player, limits):
        """The page plays faster while it is behind. Other work on the machine makes it late in between: that it comes near is what counts."""
        def is_near():
            shown = player.shown_since(time.time() - self.WINDOW)
            return shown and statistics.median(age for _, age in shown) <= limits.age

        try:
            wait_for("a picture that is not far behind", self.CATCH_UP, is_near)
        except TimeoutError:
            pass  # It is judged as it is.

    def _let_run(self, player, least, seconds):
        """Until it shows this many pictures a second. Other work on the machine takes some in between: that it comes to run is what counts."""
        def runs():
            return len(player.shown_since(time.time() - self.WINDOW)) >= self.WINDOW * least
        with contextlib.suppress(TimeoutError):
            wait_for("pictures that run", seconds, runs)

    def _in_time(self, outcome, player, seconds, limit, text):
        """Judges a time. What the player waited for a processor meanwhile is the machine's: a player that starts late stays behind by as much."""
        process = getattr(player, "process", None)
        waited = process.waited() if process else 0.0
        self._expect(outcome, seconds - waited <= limit, f"{text.format(seconds)}, not {limit:g} s (the player waited {waited:.1f} s for a processor)")

    def _judge_picture(self, player, shape, least, limits, outcome):
        end = time.time()
        shown = player.shown_since(end - self.WINDOW)
        outcome.tracks = player.tracks()
        self._expect(outcome, player.is_running, f"the player ended: {self._last_words(player)}")
        if not shown:
            raise Failure(f"the picture stands still for {end - player.pictures[-1][0]:.1f} s: {self._last_words(player)}")
        outcome.age = statistics.median(age for _, age in shown)
        outcome.rate = len(shown) / self.WINDOW
        self._in_time(outcome, player, outcome.age, limits.age, "{:.1f} s behind")
        # No clock runs ahead: such a picture was read wrongly.
        self._expect(outcome, outcome.age > -0.1, f"a picture of the future ({outcome.age:.1f} s)")
        self._expect(outcome, outcome.rate >= least, f"{outcome.rate:.0f} pictures a second, not {least:.0f}")
        picture = player.picture()
        outcome.wrong += clockcode.wrong_colours(picture.pixel)
        self._judge_tracks(player, shape, outcome)
        if shape.audio and hasattr(player, "sound_bytes") and (player.takes_late_tracks or not shape.audio_delay):
            self._expect(outcome, player.sound_bytes > 0, "no sound")
        if shape.audio_delay and not hasattr(player, "sound_bytes") and player.takes_late_tracks:
            self._expect_sound(player.pages, outcome)
        width = (shape.second_size or shape.size)[0]
        seen = player.width()
        if seen:
            self._expect(outcome, seen == width, f"the picture is {seen} wide, not {width}")

    def _expect_sound(self, pages, outcome):
        """That what is decoded is more than the silence that players have until there is sound."""
        before = pages.last["audioBytes"]
        time.sleep(2)
        rate = (pages.last["audioBytes"] - before) / 2
        self._expect(outcome, rate > 1_000, f"silence: {rate:.0f} bytes of sound a second")

    def _disturb(self, case, server, player, outcome):
        """The server ends the page's session, or the machine that it is on sleeps. Then a picture made after that has to come."""
        if case.scene == "cut":
            for session in server.api("sessions?role=player")["list"]:
                server.api(f"sessions/{session['sessionId']}", method="DELETE")
        else:
            os.killpg(player.process.popen.pid, signal.SIGSTOP)
            time.sleep(8)
            os.killpg(player.process.popen.pid, signal.SIGCONT)
        begin = time.time()
        try:
            wait_for("a picture made after that", 15, lambda: any(age < when - begin for when, age in player.shown_since(begin)))
        except TimeoutError as error:
            raise Failure(f"{error}: {self._last_words(player)}") from None
        time.sleep(self.SETTLE)

    def _judge_page(self, pages, case, outcome):
        """Checks the documents' page: the text it shows its user, and a buffer that does not grow."""
        kept = sum(end - begin for begin, end in pages.last["buffered"])
        # The group that is watched stays whole.
        most = 20 + SHAPES[case.shape].gop_seconds
        self._expect(outcome, kept <= most, f"{kept:.0f} s of media in the buffer, not {most:g}")
        self._expect(outcome, not pages.last["status"], f"the page says {pages.last['status']!r} while it plays")
        expected = {"cut": "Trying again", "return": "Waiting for the device"}.get(case.scene)
        if expected:
            said = " ".join(pages.statuses)
            self._expect(outcome, expected in said, f"the page said {said!r}, nothing with {expected!r}")

    def _judge_tracks(self, player, shape, outcome):
        expected = shape.tracks
        if not shape.audio and outcome.case.protocol in (*plan.HLS, "mp4", "page-ws"):
            # Silence, in case sound comes later.
            expected = sorted([*expected, "audio aac"])
        if outcome.case.protocol == "whep":
            # G.711 passes as it is; everything else becomes Opus.
            expected = ["audio opus" if track.startswith("audio") and shape.audio != "pcmu" else track for track in expected]
            expected = [f"video {shape.webrtc_video}" if track.startswith("video") and shape.webrtc_video else track for track in expected]
        seen = outcome.tracks
        if seen is None:
            outcome.wrong.append("the player names no tracks")
            return
        if shape.audio_delay and not player.takes_late_tracks:
            expected = [track for track in expected if track.startswith("video")]
            seen = [track for track in seen if not track.startswith("audio")]
        alike = len(seen) == len(expected) and all(
            track == other or (track.endswith(" ?") and track[:-1] == other[: len(track) - 1]) for track, other in zip(seen, expected)
        )
        self._expect(outcome, alike, f"tracks {', '.join(seen)}; expected {', '.join(expected)}")

    def _judge_sound(self, player, shape, limits, outcome):
        """Of a stream without pictures: that it is heard, soon, and goes on."""

        def amount():
            if hasattr(player, "sound_bytes"):
                return player.sound_bytes
            return (player.pages.last or {}).get("audioBytes", 0)

        try:
            wait_for("the sound", limits.first + 12, lambda: amount() or not player.is_running)
        except TimeoutError as error:
            raise Failure(f"{error}: {self._last_words(player)}") from None
        outcome.first = time.time() - player.begin
        self._in_time(outcome, player, outcome.first, limits.first, "first sound after {:.1f} s")
        time.sleep(self.SETTLE - 2)
        before = amount()
        time.sleep(2)
        self._expect(outcome, amount() > before, "the sound has stopped")
        outcome.tracks = player.tracks()
        self._judge_tracks(player, shape, outcome)

    @staticmethod
    def _expect(outcome, condition, complaint):
        if not condition:
            outcome.wrong.append(complaint)

    @staticmethod
    def _last_words(player):
        return " ".join(player.errors().split())[-300:]

    def _save_picture(self, player, folder, outcome):
        if not (outcome.wrong or self.keep or outcome.age is None):
            return
        picture = player.picture()
        if picture:
            picture.save(os.path.join(folder, "picture.png"))
        with open(os.path.join(folder, "pictures.csv"), "w", encoding="utf-8") as file:
            file.write("seconds,age\n")
            file.writelines(f"{when - player.begin:.3f},{age:.3f}\n" for when, age in player.shown_since(0))
        with open(os.path.join(folder, "says.txt"), "w", encoding="utf-8") as file:
            file.write(player.errors())


def beside_nginx(outcomes):
    """Sets our figures beside nginx-rtmp's: (case of ours, whether it is no worse, text)."""
    ours = {(o.case.player, o.case.shape): o for o in outcomes if o.case.server == "earshot" and o.case.scene == "join"
            and o.case.protocol == "rtmp"}
    lines = []
    for theirs in (o for o in outcomes if o.case.server != "earshot"):
        own = ours.get((theirs.case.player, theirs.case.shape))
        if not own or theirs.skipped or own.skipped:
            continue
        margin = plan.margins(SHAPES[own.case.shape])
        name = f"{own.case.player} {own.case.shape}"
        if theirs.first is None:
            lines.append((True, f"{name}: nginx-rtmp shows nothing"))
        elif own.first is None or (theirs.age is not None and own.age is None):
            lines.append((False, f"{name}: nothing here; nginx-rtmp after {theirs.first:.1f} s"))
        else:
            is_well = own.first <= theirs.first + margin.first
            text = f"{name}: first {own.first:.1f} s against {theirs.first:.1f} s (+{margin.first:g})"
            # Sound alone has no age.
            if theirs.age is not None:
                is_well = is_well and own.age <= theirs.age + margin.age
                text += f", age {own.age:.1f} s against {theirs.age:.1f} s (+{margin.age:g})"
            lines.append((is_well, text))
    return lines
