"""The planted faults: what each is, where, and which run must notice it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    name: str
    what: str
    file: str
    # Pairs: the first stands in the file once, and the second takes its place.
    edits: tuple
    command: tuple
    # Part of a line that the run prints then.
    told: str

    def misplaced(self, folder):
        """The reason why the fault cannot be planted, or None."""
        path = folder / self.file
        if not path.is_file():
            return f"there is no {self.file}"
        text = path.read_text(encoding="utf-8")
        counts = {before: text.count(before) for before, _ in self.edits}
        return next((f"{self.file} has {before!r} {count} times, not once" for before, count in counts.items() if count != 1), None)

    def plant(self, folder):
        """Returns the file as it was."""
        path = folder / self.file
        kept = path.read_text(encoding="utf-8")
        text = kept
        for before, after in self.edits:
            text = text.replace(before, after)
        path.write_text(text, encoding="utf-8")
        return kept

    def take_back(self, folder, kept):
        (folder / self.file).write_text(kept, encoding="utf-8")


def address(suite):
    return ("scripts/sanitize.sh", "address", "--filter", suite)


def tests(suite):
    """Builds no more than these tests need."""
    core = "LibC,CFileStatus,Support,Media,RTMP,Health,Relay,Rooms,TestSupport,RoomTestSupport"
    command = f'EARSHOT_CORE={core} exec swift test --disable-xctest --scratch-path "$EARSHOT_SCRATCH/core" --filter {suite}'
    return ("bash", "-c", command)


SENT = "            viewer.count(bytes: total, messages: to - from)\n"
COUNTER = "    private let viewers = Atomic<Int>(0)\n"
ENTERS = "        guard self.viewers.add(1, ordering: .relaxed).newValue > limit else { return true }\n"
LEAPS = "            state.leap = Leap(offsetMs: offset, sinceMs: steady)\n"
HISTORY = 'python3 Tests/Histories --earshot "$(scripts/build.sh debug earshot)/earshot" --operations 2000 --kills 2 --seed 7'

ALL = (
    Fault(
        "leak", "a muxer that is not freed", "Sources/FFmpeg/Output.swift",
        (("    deinit {\n        avformat_free_context(self.context)\n", "    deinit {\n"),),
        address("FFmpegTests.FragmentMuxerTests"), "LeakSanitizer: detected memory leaks"),
    Fault(
        "overflow", "a buffer that is too short where codec parameters are copied", "Sources/FFmpeg/CodecParameters.swift",
        (("av_mallocz(self.extradata.readableBytes + Int(earshot_input_padding))", "av_mallocz(self.extradata.readableBytes - 1)"),),
        address("FFmpegTests.FragmentMuxerTests"), "AddressSanitizer: heap-buffer-overflow"),
    Fault(
        "race", "a counter that several threads write without a lock", "Sources/Relay/Stream.swift",
        ((COUNTER, COUNTER + "    nonisolated(unsafe) private var planted = 0\n"), (ENTERS, "        self.planted += 1\n" + ENTERS)),
        ("scripts/sanitize.sh", "thread", "--filter", "RelayTests"), "ThreadSanitizer: data race"),
    Fault(
        "doubled-frame", "a frame that one viewer gets twice", "Sources/Relay/Viewing/LoopFanout.swift",
        ((SENT + "            return to\n", SENT + "            return to % 97 == 0 && from < to - 1 ? to - 1 : to\n"),),
        tests("RelayTests.ModelTests"), "recorded an issue"),
    Fault(
        "clock-step", "room time that follows a leap of the machine's clock at once", "Sources/Rooms/Rules/RoomClock.swift",
        ((LEAPS, LEAPS + "            state.offsetMs = offset\n"),),
        tests("RoomsTests.RoomClockTests"), "recorded an issue"),
    Fault(
        "lost-event", "one event in 199 that no reader is told of", "Sources/RoomRegistry/Events/EventStatements.swift",
        (('"id > \\(filter.mark(id))"', '"id > \\(filter.mark(id)) AND id % 199 <> 0"'),),
        ("bash", "-c", HISTORY), "an event is missing"),
)
