import SignalCheck
import Talk
import Testing

/// Many rooms for a long time, on a simulated clock.
@Suite struct ManyRoomsTests {
    /// Eight rooms of four talkers for ten minutes. No buffer underruns once it has settled, and every mix has all its voices.
    @Test func tenMinutesWithoutAGap() {
        let ticks = 10 * 60 * 48_000 / 1_024
        for room in 0..<8 {
            var random = Seeded(seed: UInt64(room) + 1)
            var talkers = (0..<4).map { Talker(participant("t\($0)"), amplitude: 0.05 + 0.01 * Float($0)) }
            var mixer = Mixer()
            var settled: Int64 = 0
            var quietTicks = 0
            for tick in 0..<Int64(ticks) {
                let nowUs = TalkFormat.microseconds(tick: tick)
                var inputs: [Mixer.Input] = []
                for index in talkers.indices {
                    talkers[index].arrive(untilUs: nowUs, &random)
                    inputs.append(.init(id: talkers[index].id, block: talkers[index].buffer.pull(nowUs: nowUs)))
                }
                mixer.beginTick(inputs)
                // The buffers settle within ten seconds.
                if tick == 470 { settled = talkers.reduce(0) { $0 + $1.buffer.counters.underruns } }
                if tick > 470, inputs.contains(where: { $0.block.kind != .played }) { quietTicks += 1 }
                if tick % 97 == 0, tick > 470 {
                    let peak = mixer.mix(without: talkers[0].id).samples.reduce(Float(0)) { max($0, abs($1)) }
                    // The sum of the three other constant voices.
                    #expect(abs(peak - 0.21) < 0.01, "room \(room), tick \(tick): \(peak)")
                }
            }
            let underruns = talkers.reduce(0) { $0 + $1.buffer.counters.underruns } - settled
            #expect(underruns == 0 && quietTicks == 0, "room \(room): \(underruns) underruns, \(quietTicks) ticks")
        }
    }

    /// A talker with a constant voice. Each run arrives up to 8 ms after it was recorded.
    private struct Talker {
        let id: ParticipantID
        let run: [Float]
        var buffer = JitterBuffer()
        private var next: Int64 = 0
        private var dueUs: Int64 = 0

        init(_ id: ParticipantID, amplitude: Float) {
            self.id = id
            self.run = Array(repeating: amplitude, count: TalkFormat.blockSamples)
        }

        mutating func arrive(untilUs nowUs: Int64, _ random: inout Seeded) {
            while self.dueUs <= nowUs {
                self.buffer.push(self.run, timestampMs: TalkFormat.milliseconds(tick: self.next), arrivalUs: self.dueUs)
                self.next += 1
                self.dueUs = max(self.dueUs, TalkFormat.microseconds(tick: self.next) + Int64.random(in: 0...8_000, using: &random))
            }
        }
    }
}
