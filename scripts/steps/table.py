"""Every step of `make check`, `make test` and `make verify`, in one table."""

import os
import pathlib
from dataclasses import dataclass

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# The debug build, and what is in it.
BUILT = os.path.join(os.environ.get("SCRATCH", ""), "debug")
TESTS = f"{BUILT}/earshotPackageTests.xctest"
EARSHOT = f"{BUILT}/earshot"

# What a whole server and its clients are made of.
SERVER = ("Sources", "Package.swift", "Tests/TestSupport", "Tests/ServerTestSupport", "scripts")


@dataclass(frozen=True)
class Step:
    name: str
    # One line for the list.
    about: str
    command: tuple
    # Seconds alone on two cores; `cold` more where its folder of builds, by its name's beginning, is not there.
    seconds: int
    cold: int = 0
    builds: str = "debug"
    # How many cores it keeps busy meanwhile.
    load: float = 1
    # Names of the steps without which it makes no sense.
    after: tuple = ("build",)
    # Folders and files that can change its result, from the clone's root.
    reads: tuple = ()
    # The tests that it runs: regular expressions for `--filter` and `--skip`. None: it runs no Swift tests.
    only: tuple = None
    without: tuple = ()
    # It runs them once more, in another way.
    is_again: bool = False


def swift_tests(name, about, seconds, only=(), without=(), width=6, before=(), **rest):
    """A step that runs tests of the debug build's bundle. Hundreds of servers and clients at once would only wait for one another; `width` is how many
    tests run at a time."""
    flags = [flag for word in only for flag in ("--filter", word)] + [flag for word in without for flag in ("--skip", word)]
    command = (*before, TESTS, "--testing-library", "swift-testing", "--experimental-maximum-parallelization-width", str(width), *flags)
    return Step(name, about, command, seconds, only=only, without=without, **rest)


def some_tests(flags):
    """The tests that these flags of `swift test` choose; they show what they print."""
    return Step(
        "tests", "the tests that were asked for",
        (TESTS, "--testing-library", "swift-testing", "--experimental-maximum-parallelization-width", os.environ.get("TEST_WIDTH", "6"), *flags), 0,
        only=())


def python(folder, *words):
    return ("python3", f"Tests/{folder}", *words)


# Whole servers; LinkTransportTests are the other ends of their links.
WHOLE = ("^EndToEndTests\\.",)
LINKS = ("^LinkTransportTests\\.",)
LOADED = ("^EndToEndTests\\.LoadedServerTests",)
# A tool in Python that makes thousands of calls.
DOCUMENTED = ("^EndToEndTests\\.APISchemathesisTests",)
# Restarts, kills, calls, pushes, webhooks, feeds, tokens; two servers on one database.
ON_POSTGRES = (
    "\\.(APIRoomTests|APIAuditTests|KillRestartTests|PushRateTests|WebhookDeliveryTests|WebSocketEventsTests|CLITokenTests|PostgresServerTests"
    "|Cluster(Node|Call)Tests)/",)
POSTGRES = ("env", "EARSHOT_STORE=postgres", "EARSHOT_POSTGRES_FAST=1", "scripts/postgres.sh", "run")

BUILD = Step("build", "debug, with all tests", ("scripts/build-tests.sh",), 15, cold=450, load=2,
             after=("format", "scripts", "imports", "graph", "player page", "comparisons", "words"))

CHECK = [
    Step("format", "swift format", ("swift", "format", "lint", "--strict", "--parallel", "--recursive", "Package.swift", "Sources", "Tests", "Benchmarks"),
         5, load=2, after=()),
    Step("scripts", "shellcheck; Python compiles", ("scripts/lint-scripts.sh",), 2, after=()),
    Step("imports", "what targets import beside Package.swift", ("scripts/check_imports.py",), 3, after=()),
    Step("graph", "the picture of targets beside Package.swift", ("scripts/target_graph.py",), 3, after=()),
    Step("player page", "its player is the console's", ("scripts/player_page.py",), 1, after=()),
    Step("comparisons", "names are compared by their bytes", ("scripts/check_names.py",), 3, after=()),
    Step("words", "no name has a word that the glossary forbids", ("scripts/check_words.py",), 3, after=()),
    BUILD,
    # The longest that computes begins first.
    swift_tests("parts", "tests of each target without a server, and the kept fuzz inputs", 80, without=WHOLE + LINKS, load=1.2),
    Step("names", "what the documents name exists", ("python3", "scripts/docs_check.py", EARSHOT), 3),
    Step("where tests run", "each test runs in one step, and what moved has its successor", ("python3", "scripts/steps", "list", "check"), 5),
]

# One of each thing that a user does; the other cases are a part of `make verify`.
CONSOLE = ("login", "wall", "preview", "actions", "talk", "roles", "tokensAndTargets")
APPS = ("cloud_sdk", "mesh_page", "class_page", "machine_page", "whiteboard", "broadcast", "guide_python", "keys")
PLAYERS = ("chromium/hls/plain/join", "ffmpeg/rtmp/obs/join", "page/ws/plain/return", "mpv/rtmp/plain/before", "whepAiortc/plain/join")

TEST = [
    swift_tests("servers", "whole servers with real clients", 330, only=WHOLE, without=LOADED + DOCUMENTED, width=10),
    swift_tests("links", "pulls and pushes against nginx, librtmp, ffmpeg", 16, only=LINKS, load=0.5),
    swift_tests("rooms on PostgreSQL", "the tests of Store and RoomRegistry once more", 80, only=("^RoomRegistryTests\\.",), before=POSTGRES, is_again=True),
    swift_tests("servers on PostgreSQL", "some suites of whole servers once more", 31, only=ON_POSTGRES, before=POSTGRES, is_again=True),
    Step("console", "in Chromium: logging in, live pictures, actions, talk, roles, tokens", python("Console", "--earshot", EARSHOT, *CONSOLE), 40, load=0.6),
    Step("apps", "the cloud's SDK; mesh, class, machine, whiteboard and broadcast in browsers", python("Apps", "--earshot", EARSHOT, *APPS), 60, load=0.6),
    Step("players", "OBS, ffmpeg, mpv, Chromium, aiortc: pushing, playing, waiting for a device, its return",
         python("Players", "--earshot", EARSHOT, "--ci", "--cases", ",".join(PLAYERS)), 80, load=0.6),
    Step("histories", "2,000 calls with 3 kills, planted faults", python("Histories", "--ci", "--earshot", EARSHOT), 17),
    Step("demo", "its pictures and addresses", ("scripts/try-demo.sh",), 11, load=0.5),
    Step("example", "the relay without rooms: pushed by ffmpeg, played as RTMP, FLV, MP4 and HLS", ("scripts/try-example.sh",), 25, load=0.5),
    Step("cluster", "three servers say where they are, and leave nothing behind", ("scripts/try-cluster.sh",), 10, load=0.5),
    Step("commands", "the commands of the documents, on real servers", ("python3", "scripts/docs_run.py", EARSHOT), 33, load=0.7),
]

# What the address sanitizer's build is made of, and the thread sanitizer's.
ADDRESS = tuple(f"Sources/{name}" for name in ("Support", "Media", "RTMP", "HLS", "Talk", "FFmpeg", "LinkTransport", "Health", "Sockets", "Relay", "DTLSSRTP", "WebRTC", "LibC"))
THREAD = tuple(f"Sources/{name}" for name in ("Support", "Media", "RTMP", "Health", "Sockets", "Relay", "Talk", "LibC"))


def tests_of(sources):
    return tuple(f"Tests/{place.removeprefix('Sources/')}Tests" for place in sources)


VERIFY = [
    swift_tests("loaded", "churn and many connections on a server, alone", 75, only=LOADED, load=2, reads=(*SERVER, "Tests/EndToEndTests")),
    swift_tests("api", "the calls against their document, as Schemathesis makes them", 55, only=DOCUMENTED, reads=(*SERVER, "Tests/EndToEndTests")),
    swift_tests("kills", "50 writers of recordings killed at random moments", 45, only=("^FFmpegTests\\.FragmentFileTests/aKilledWriter",), before=("env", "EARSHOT_KILLS=50"),
                is_again=True, reads=("Package.swift", "Sources/FFmpeg", "Sources/Media", "Tests/FFmpegTests")),
    Step("torture", "kills, disks, clocks, hostile clients: a short case of each kind",
         python("Torture", "--ci", "--earshot", EARSHOT, "--load", f"{BUILT}/earshot-load"), 128, load=2, reads=(*SERVER, "Tests/Torture", "Benchmarks/Load")),
    Step("console", "the other cases in Chromium", python("Console", "--earshot", EARSHOT, "--without", ",".join(CONSOLE)), 150,
         reads=(*SERVER, "Tests/Console")),
    Step("apps", "the other cases of the apps' clients", python("Apps", "--earshot", EARSHOT, "--without", ",".join(APPS)), 230,
         reads=(*SERVER, "Tests/Apps", "Tests/Console", "docs/apps")),
    Step("players", "the other cases of 27", python("Players", "--earshot", EARSHOT, "--ci", "--without", ",".join(PLAYERS)), 310,
         reads=(*SERVER, "Tests/Players", "docs/player.html")),
    Step("metrics", "queries, alerts and dashboard in a real Prometheus", python("Metrics", "--earshot", EARSHOT), 110,
         reads=(*SERVER, "Tests/Metrics", "deploy")),
    Step("package", "unit, man pages, completions, archive, `make install`, nginx's configuration", python("Package", "--earshot", EARSHOT), 60,
         reads=(*SERVER, "Tests/Package", "deploy")),
    Step("life", "the package's life in a clean Debian, and under systemd", ("scripts/package-life.sh", EARSHOT), 200,
         reads=(*SERVER, "Tests/Package", "deploy")),
    Step("address", "the tests of the parts that read what peers send, under the address sanitizer", ("scripts/sanitize.sh", "address"), 250, cold=400, builds="address", load=2,
         after=(), reads=("Package.swift", "scripts/sanitize.sh", "scripts/leaks.txt", *ADDRESS, *tests_of(ADDRESS))),
    Step("fuzzing", "ten seconds of new inputs for each decoder", ("scripts/fuzz.sh", "ci"), 110, cold=400, builds="address", load=2, after=(),
         reads=("Package.swift", "scripts/fuzz.sh", "Tests/Fuzz", *ADDRESS, "Sources/Rooms", "Sources/ServerConfiguration", "Sources/Listening", "Sources/HTTPServer", "Sources/Apps", "Sources/Access")),
    Step("thread", "the tests of the relay and of talk under the thread sanitizer", ("scripts/sanitize.sh", "thread"), 105, cold=200, builds="thread", load=2, after=(),
         reads=("Package.swift", "scripts/sanitize.sh", "scripts/races.txt", *THREAD, "Tests/SocketsTests", "Tests/RelayTests", "Tests/TalkTests")),
    Step("budgets", "instructions and allocations for a frame", ("Benchmarks/budget.sh",), 70, cold=140, builds="release", load=2, after=(),
         reads=("Package.swift", "Benchmarks/Budget", "Benchmarks/budget.sh", "Benchmarks/budget.limits", "Benchmarks/budget-program.sh", *THREAD, "Sources/FFmpeg", "Sources/Trace")),
]

ALL = CHECK + TEST + VERIFY
