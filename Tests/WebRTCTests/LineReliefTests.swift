import Testing

@testable import WebRTC

/// What viewers get whose line does not take the stream.
@Suite struct LineReliefTests {
    /// A line that does so for so many seconds, told once a second. Returns each new stage and its second.
    private static func run(
        _ relief: inout LineRelief, _ isWell: Bool?, seconds: Range<Int64>, hasSound: Bool = true
    ) -> [(Int64, LineRelief.Stage)] {
        seconds.compactMap { second in
            relief.note(isWell: isWell, hasSound: hasSound, nowMs: second * 1_000) ? (second, relief.stage) : nil
        }
    }

    @Test func itGoesDownByStages() {
        var relief = LineRelief()
        let stages = Self.run(&relief, false, seconds: 0..<100)
        #expect(stages.map(\.0) == [4, 9, 14] && stages.map(\.1) == [.keyframes, .sound, .none])
        var mute = LineRelief()
        #expect(Self.run(&mute, false, seconds: 0..<100, hasSound: false).map(\.1) == [.keyframes, .none])
    }

    /// Each relapse makes the next way up longer; a minute of peace makes that forgotten.
    @Test func itComesBack() {
        var relief = LineRelief()
        #expect(Self.run(&relief, false, seconds: 0..<10).map(\.1) == [.keyframes, .sound])
        let up = Self.run(&relief, true, seconds: 10..<60)
        #expect(up.map(\.1) == [.keyframes, .all] && up.map(\.0) == [20, 31])
        #expect(Self.run(&relief, false, seconds: 60..<66).map(\.0) == [64])
        #expect(Self.run(&relief, true, seconds: 66..<200).map(\.0) == [86])
        #expect(Self.run(&relief, false, seconds: 200..<206).map(\.0) == [204])
        #expect(Self.run(&relief, true, seconds: 206..<300).map(\.0) == [211])
    }

    /// A moment is not heeded, and while nothing is reported nothing changes.
    @Test func momentsAreNotHeeded() {
        var relief = LineRelief()
        for second: Int64 in 0..<100 {
            let hasChanged = relief.note(isWell: second % 4 == 0, hasSound: true, nowMs: second * 1_000)
            #expect(!hasChanged)
        }
        #expect(Self.run(&relief, nil, seconds: 100..<200).isEmpty && relief.stage == .all)
    }
}
