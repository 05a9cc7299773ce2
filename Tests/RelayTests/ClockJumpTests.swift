import Media
import Testing

@testable import Relay

/// How stream time reacts to a publisher's clock that jumps in mid-stream.
@Suite struct ClockJumpTests {
    /// One coded frame: its arrival time and the device's timestamp.
    private struct Step {
        let kind: Frame.Kind
        let atMs: Int64
        let timestamp: Int64
    }

    private static func run(_ steps: [Step]) -> [(kind: Frame.Kind, time: Int64)] {
        var timeline = Timeline()
        timeline.publisherChanged()
        return steps.map { ($0.kind, timeline.map($0.timestamp, $0.kind, isCoded: true, nowMs: $0.atMs)) }
    }

    private static func times(_ mapped: [(kind: Frame.Kind, time: Int64)], _ kind: Frame.Kind) -> [Int64] {
        mapped.filter { $0.kind == kind }.map(\.time)
    }

    /// A camera with a picture every 40 ms and sound every 20 ms, interleaved. From `jumpAt` on, the device's clock is off by `by`. Sound
    /// lags by `lagMs`: it was recorded that much before it arrives.
    private static func camera(seconds: Int64, jumpAt: Int64, by: Int64, lagMs: Int64 = 0) -> [Step] {
        stride(from: 0, to: seconds * 1_000, by: 20).flatMap { atMs -> [Step] in
            func device(_ ms: Int64) -> Int64 { 3_600_000 + (ms >= jumpAt ? ms + by : ms) }
            let sound = Step(kind: .audio, atMs: atMs, timestamp: device(atMs - lagMs))
            return atMs % 40 == 0 ? [Step(kind: .video, atMs: atMs, timestamp: device(atMs)), sound] : [sound]
        }
    }

    static let jumps: [(by: Int64, lagMs: Int64)] = [
        (-10_000, 0), (-10_000, 500), (-10_000, 900), (-1_100, 0), (-3_600_000, 200), (3_600_000, 0), (3_600_000, 900), (11_000, 300),
    ]

    /// Both kinds continue evenly, as far from each other as before.
    @Test(arguments: jumps) func goesOnEvenly(_ jump: (by: Int64, lagMs: Int64)) {
        let jumped = Self.run(Self.camera(seconds: 6, jumpAt: 3_000, by: jump.by, lagMs: jump.lagMs))
        let even = Self.run(Self.camera(seconds: 6, jumpAt: .max, by: 0, lagMs: jump.lagMs))
        for kind in [Frame.Kind.video, .audio] {
            let (got, expected) = (Self.times(jumped, kind), Self.times(even, kind))
            let first = zip(got, expected).first { $0 != $1 }
            #expect(first == nil && got.count == expected.count, "\(kind)")
        }
    }

    /// Timestamps without a jump: relayed unchanged.
    static let ordinary: [(name: String, steps: [(Frame.Kind, Int64, Int64)])] = [
        ("sound that lags", [(.video, 0, 5_000), (.audio, 0, 4_100), (.video, 40, 5_040), (.audio, 40, 4_120)]),
        (
            "sound in large blocks",
            [(.audio, 0, 0), (.audio, 0, 1_500), (.audio, 0, 3_000), (.video, 10, 40), (.video, 1_500, 1_500), (.audio, 3_000, 3_020)]
        ),
        ("sound that begins late", [(.video, 0, 0), (.video, 5_000, 5_000), (.audio, 5_000, 0), (.audio, 5_020, 20)]),
        ("a pause", [(.video, 0, 0), (.audio, 0, 0), (.video, 60_000, 60_000), (.audio, 60_000, 60_010)]),
        ("slides, all at once", [(.video, 0, 0), (.video, 0, 9_000), (.video, 0, 18_000), (.audio, 0, 0), (.audio, 0, 18_000)]),
        ("what a stalled network held back", [(.video, 0, 0), (.video, 5_000, 40), (.video, 5_000, 80), (.video, 5_001, 5_000)]),
        ("pictures that were away", [(.video, 0, 0), (.audio, 0, 0), (.audio, 60_000, 60_000), (.video, 60_000, 60_020)]),
        ("a step of ten seconds ahead", [(.video, 0, 0), (.video, 40, 10_040)]),
    ]

    @Test(arguments: ordinary.indices) func relayedAsItIs(_ index: Int) {
        let (name, steps) = Self.ordinary[index]
        let mapped = Self.run(steps.map { Step(kind: $0.0, atMs: $0.1, timestamp: $0.2) })
        #expect(mapped.map(\.time) == steps.map(\.2), "\(name)")
    }

    /// Jitter does not take time back, and moves nothing else.
    @Test func jitterStandsStill() {
        let stamps: [Int64] = [0, 40, 75, 60, 160, 150, 240]
        let mapped = Self.run(stamps.enumerated().map { Step(kind: .video, atMs: Int64($0.offset * 40), timestamp: $0.element) })
        #expect(mapped.map(\.time) == [0, 40, 75, 75, 160, 160, 240])
    }

    /// A clock that is set back by less than a second: both kinds go on evenly, as far from each other as before.
    @Test(arguments: [Int64(-150), -300, -800]) func smallStepsBackGoOn(by: Int64) {
        let jumped = Self.run(Self.camera(seconds: 6, jumpAt: 3_000, by: by, lagMs: 60))
        let even = Self.run(Self.camera(seconds: 6, jumpAt: .max, by: 0, lagMs: 60))
        for kind in [Frame.Kind.video, .audio] { #expect(Self.times(jumped, kind) == Self.times(even, kind), "\(kind)") }
    }

    /// An encoder that stamps pictures by presentation, in decode order: its steps back are no jumps, so time does not run away.
    @Test func disorderIsNoJump() {
        let stamps = (0..<100).flatMap { group in [0, 4, 2, 1, 3].map { Int64(group) * 400 + $0 * 80 } }
        let mapped = Self.run(stamps.enumerated().map { Step(kind: .video, atMs: Int64($0.offset * 80), timestamp: $0.element) })
        for (step, stamp) in zip(mapped, stamps) { #expect((0...400).contains(step.time - stamp), "\(stamp)") }
        #expect(zip(mapped, mapped.dropFirst()).allSatisfy { $0.time <= $1.time })
    }

    /// Sound from 0 beside pictures from 8 hours, in either order: the second begins where the first one is, and stays there.
    @Test(arguments: [Frame.Kind.audio, .video]) func clocksHoursApart(first: Frame.Kind) {
        var steps: [Step] = []
        for atMs in stride(from: Int64(0), to: 5_000, by: 40) {
            let pair = [Step(kind: .audio, atMs: atMs, timestamp: atMs), Step(kind: .video, atMs: atMs, timestamp: 28_800_000 + atMs)]
            steps += first == .audio ? pair : pair.reversed()
        }
        let mapped = Self.run(steps)
        let start: Int64 = first == .audio ? 0 : 28_800_000
        let even = stride(from: start, to: start + 5_000, by: 40).map { $0 }
        for kind in [Frame.Kind.video, .audio] {
            let times = Self.times(mapped, kind)
            #expect(times.count == even.count && zip(times, even).allSatisfy { abs($0 - $1) <= 1 }, "\(kind)")
        }
    }

    /// After a pause with a restarted device clock, stream time includes the pause.
    @Test func clockThatStartsAgainAfterAPause() {
        let mapped = Self.run([
            Step(kind: .video, atMs: 0, timestamp: 100_000), Step(kind: .audio, atMs: 5, timestamp: 100_010),
            Step(kind: .video, atMs: 8_000, timestamp: 0), Step(kind: .audio, atMs: 8_005, timestamp: 10),
        ])
        #expect(mapped.map(\.time) == [100_000, 100_010, 108_000, 108_010])
    }

    /// Sound jumps a while after the pictures; until then its time is unaffected.
    @Test func oneKindAfterTheOther() {
        var steps: [Step] = []
        for atMs in stride(from: Int64(0), to: 4_000, by: 40) {
            steps.append(Step(kind: .video, atMs: atMs, timestamp: atMs < 2_000 ? 50_000 + atMs : atMs))
            steps.append(Step(kind: .audio, atMs: atMs, timestamp: atMs < 2_400 ? 50_000 + atMs : atMs))
        }
        let mapped = Self.run(steps)
        let expected = stride(from: Int64(50_000), to: 54_000, by: 40).map { $0 }
        #expect(Self.times(mapped, .video) == expected)
        #expect(Self.times(mapped, .audio) == expected)
    }

    /// A jump beyond the limit for sound only, since pictures have longer steps. Both stay together.
    @Test func bothFollowAJumpAtTheLimit() {
        let mapped = Self.run(
            [Step(kind: .video, atMs: 0, timestamp: 5_000), Step(kind: .audio, atMs: 0, timestamp: 5_000)]
                + [Step(kind: .audio, atMs: 10, timestamp: 3_990), Step(kind: .video, atMs: 40, timestamp: 4_020)])
        #expect(mapped.map(\.time) == [5_000, 5_000, 5_010, 5_040])
    }

    /// A device loops a file, each round with another offset between the kinds. No kind repeats a timestamp.
    @Test func timesOfAKindOnlyGrow() {
        var steps: [Step] = []
        for round in 0..<5 {
            for ms in stride(from: Int64(0), to: 5_000, by: 25) {
                let atMs = Int64(round) * 5_000 + ms
                steps.append(Step(kind: .video, atMs: atMs + ms % 50, timestamp: ms))
                steps.append(Step(kind: .audio, atMs: atMs + ms % 75, timestamp: ms + Int64(round % 2 == 0 ? 300 : 0)))
            }
        }
        let mapped = Self.run(steps)
        for kind in [Frame.Kind.video, .audio] {
            let times = Self.times(mapped, kind)
            #expect(zip(times, times.dropFirst()).allSatisfy { $0 < $1 }, "\(kind)")
            #expect(times[times.count - 1] - times[0] > 24_000)
        }
    }

    /// Headers and metadata in mid-stream carry 0 or any other time. They neither move stream time nor go out as if hours old.
    @Test func headersDoNotCount() {
        var timeline = Timeline()
        timeline.publisherChanged()
        _ = timeline.map(7_200_000, .video, isCoded: true, nowMs: 0)
        for kind in [Frame.Kind.video, .audio, .data] {
            #expect(timeline.map(0, kind, isCoded: false, nowMs: 20) == 7_200_000)
            #expect(timeline.map(9_000_000, kind, isCoded: false, nowMs: 20) == 7_200_000)
            #expect(timeline.map(7_200_020, kind, isCoded: false, nowMs: 20) == 7_200_020)
        }
        #expect(timeline.map(7_200_040, .video, isCoded: true, nowMs: 40) == 7_200_040)
    }
}
