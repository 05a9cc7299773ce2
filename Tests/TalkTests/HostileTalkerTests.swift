import SignalCheck
import Talk
import Testing

/// Hostile talkers and bad networks.
@Suite struct HostileTalkerTests {
    /// Nothing arrives for three seconds, and then all of it at once.
    @Test(arguments: [0.0, 0.4]) func aBurstAfterAStallIsCut(_ spread: Double) {
        var line = Line(seconds: 20)
        for index in line.runs.indices where (5_000_000..<8_000_000).contains(line.runs[index].arrivalUs) {
            let behind = Double(line.runs[index].arrivalUs - 5_000_000) / 3_000_000
            line.runs[index].arrivalUs = 8_000_000 + Int64(behind * spread * 1_000_000)
        }
        line.play(Voice.clicks(every: 12_000, from: 0))
        let counters = line.buffer.counters
        // The first 60 ms are concealed, then there is silence.
        #expect(line.kinds[Int(5.2 * 46.875)..<Int(7.9 * 46.875)].allSatisfy { $0 == .silent })
        #expect(counters.dropped > 48_000 * 2 && counters.dropped < 48_000 * 3, "\(counters)")
        #expect(line.delays[Int(8.9 * 46.875)...].allSatisfy { $0 <= 120 })
        #expect(line.delays.allSatisfy { $0 <= 3_100 } && line.depths.allSatisfy { $0 <= 1_000 })
        // Everything after the stall is there, at most 200 ms late.
        let clicks = Signal.clicks(line.output, threshold: 0.3)
        for click in stride(from: 9 * 48_000, to: 20 * 48_000, by: 12_000) {
            let sent = line.sent(click)
            #expect(clicks.contains { (0...9_600).contains(Double($0) - sent) }, "the click at \(click / 48) ms")
        }
    }

    @Test(arguments: [2.0, 0.5]) func aTalkerAtAnotherSpeedIsBounded(_ speed: Double) {
        var line = Line(seconds: 60 * speed, speed: speed)
        line.play(Voice.tone(500))
        let counters = line.buffer.counters
        #expect(line.delays.allSatisfy { $0 <= 250 }, "\(line.delays.max() ?? 0)")
        #expect(line.depths.allSatisfy { $0 <= 300 }, "\(line.depths.max() ?? 0)")
        if speed == 2 { #expect(counters.dropped > 48_000 * 50 && counters.dropped < 48_000 * 65, "\(counters)") }
        // Nearly all of the time is audible.
        let heard = 60 - Double(Signal.longestSilence(line.output)) / 48_000
        #expect(heard > 59, "\(heard)")
        #expect(counters.played + counters.dropped >= Int64(60 * speed * 48_000) * 95 / 100, "\(counters)")
    }

    @Test(arguments: [7_200_000, -7_200_000, 900, -900, 1 << 32, -(1 << 32)] as [Int64]) func timestampsJump(_ by: Int64) {
        var line = Line(seconds: 12, originMs: 3_600_000)
        for index in line.runs.indices where line.runs[index].arrivalUs >= 6_000_000 { line.runs[index].timestampMs += by }
        line.play(Voice.tone(700))
        let counters = line.buffer.counters
        // There is no gap either.
        #expect(counters.resyncs == 1 && counters.dropped == 0 && counters.underruns == 1, "\(counters)")
        #expect(Signal.longestSilence(line.output(1, 11)) < 96)
        #expect(Signal.jumps(line.output(1, 11), over: 0.06).isEmpty)
        #expect(line.delays[200...].allSatisfy { $0 <= 75 })
    }

    /// A talker skips 500 ms, in its timestamps and on the line.
    @Test func aGapIsAGap() {
        var line = Line(seconds: 12)
        line.runs.removeAll { (6_000_000..<6_500_000).contains($0.arrivalUs) }
        line.play(Voice.tone(700))
        let silence = Double(Signal.longestSilence(line.output(1, 11))) / 48
        #expect((390...515).contains(silence), "\(silence) ms")
        #expect(abs(Double(line.buffer.counters.lost) / 48 - 500) < 25)
        #expect(line.delays[330...].allSatisfy { $0 <= 45 })
        #expect(Signal.jumps(line.output, over: 0.06).isEmpty)
    }

    /// One run is missing, for example after a decoder error.
    @Test(arguments: [960, 1_024, 3_072]) func aLostRunIsConcealed(_ run: Int) {
        var line = Line(seconds: 6, run: run)
        line.runs.remove(at: line.runs.count / 2)
        line.play(Voice.tone(220))
        let counters = line.buffer.counters
        #expect(counters.lost == Int64(run) && counters.underruns <= (run == 3_072 ? 2 : 1), "\(counters)")
        #expect(Signal.longestSilence(line.output(1, 5)) < (run == 3_072 ? 400 : 96))
        #expect(Signal.jumps(line.output, over: 0.05).isEmpty)
        #expect(line.kinds[100..<200].contains(.concealed))
    }

    /// Hostile runs: NaN, infinite, too loud, too long or empty samples, and times at the ends of the integer range.
    @Test func whateverComesIsBounded() {
        var random = Seeded(seed: 11)
        var buffer = JitterBuffer()
        let times: [Int64] = [.min, .max, 0, 1, -1, 1 << 31, 1 << 32, 1 << 52, -(1 << 60)]
        for step in 0..<4_000 {
            let now = TalkFormat.microseconds(tick: Int64(step))
            let count = [0, 1, 7, 1_024, 1_024, 3_072, 60_000][Int.random(in: 0..<7, using: &random)]
            let value: Float = [0.5, .nan, .infinity, -.infinity, 1e30, -3, 0][Int.random(in: 0..<7, using: &random)]
            let time = random.chance(0.3) ? times[Int.random(in: 0..<times.count, using: &random)] : Int64(step) * 21
            let arrival = random.chance(0.1) ? times[Int.random(in: 0..<times.count, using: &random)] : now
            buffer.push(Array(repeating: value, count: count), timestampMs: time, arrivalUs: arrival)
            if random.chance(0.9) {
                let block = buffer.pull(nowUs: random.chance(0.05) ? times[Int.random(in: 0..<times.count, using: &random)] : now)
                #expect(block.samples.count == 1_024 && block.samples.allSatisfy { abs($0) <= 8 })
            }
            #expect(buffer.counters.depthMs <= 1_000)
        }
        // Afterwards the buffer works again.
        let start = TalkFormat.microseconds(tick: 4_000)
        var kinds: [TalkBlock.Kind] = []
        for step in 0..<1_500 as Range<Int64> {
            let now = start + TalkFormat.microseconds(tick: step)
            buffer.push(Array(repeating: 0.1, count: 1_024), timestampMs: step * 64 / 3, arrivalUs: now)
            kinds.append(buffer.pull(nowUs: now).kind)
        }
        #expect(kinds.suffix(100).allSatisfy { $0 == .played })
        #expect(buffer.counters.delayMs < 100)
    }

    /// Runs arrive in bursts of 100 ms, as mobile networks and TCP deliver them.
    @Test func clumps() {
        var line = Line(seconds: 30)
        for index in line.runs.indices { line.runs[index].arrivalUs = (line.runs[index].arrivalUs + 99_999) / 100_000 * 100_000 }
        line.play(Voice.clicks(every: 12_000, from: 96_000))
        let clicks = Signal.clicks(line.output, threshold: 0.3)
        for click in stride(from: 96_000, to: 30 * 48_000, by: 12_000) {
            #expect(clicks.contains { (0...9_600).contains(Double($0) - line.sent(click)) }, "the click at \(click / 48) ms")
        }
        #expect(line.delays.allSatisfy { $0 <= 200 })
        #expect(line.buffer.counters.underruns <= 4, "\(line.buffer.counters)")
    }

    /// Bursts of 250 ms exceed the longest delay. Most of the audio is still played.
    @Test func clumpsBeyondTheBound() {
        var line = Line(seconds: 30)
        for index in line.runs.indices { line.runs[index].arrivalUs = (line.runs[index].arrivalUs + 249_999) / 250_000 * 250_000 }
        line.play(Voice.tone(300))
        let part = Double(line.buffer.counters.played) / Double(30 * 48_000)
        #expect(part > 0.7, "\(part)")
        #expect(line.depths.allSatisfy { $0 <= 520 })
        #expect(Signal.jumps(line.output, over: 0.06).isEmpty)
    }

    /// A microphone is switched off and timestamps stand still meanwhile. Runs after the pause do not count as late.
    @Test func aPauseWithoutStamps() {
        var line = Line(seconds: 12)
        for index in line.runs.indices {
            let pauses = line.runs[index].arrivalUs / 2_000_000
            line.runs[index].arrivalUs += pauses * 1_300_000
        }
        line.play(Voice.clicks(every: 12_000, from: 48_000))
        let counters = line.buffer.counters
        #expect(counters.dropped < 4_800 && counters.lost == 0 && counters.underruns == 6, "\(counters)")
        #expect(line.delays[200...].allSatisfy { $0 <= 100 }, "\(line.delays.max() ?? 0)")
        #expect(Signal.clicks(line.output, threshold: 0.3, apart: 960).count >= 44)
    }

    /// Talkers leave and rejoin with another clock. The mix goes on without a step.
    @Test(arguments: 1...4 as ClosedRange<UInt64>) func churn(_ seed: UInt64) {
        var random = Seeded(seed: seed)
        var (mixer, buffers, starts) = (Mixer(), [ParticipantID: JitterBuffer](), [ParticipantID: Int64]())
        var heard: [Float] = []
        let tones = (0..<4).map { Voice.tone(150 + 60 * Double($0), 0.1) }
        for tick in 0..<Int64(1_500) {
            let now = TalkFormat.microseconds(tick: tick)
            for talker in 0..<4 {
                let id = participant("t\(talker)")
                if random.chance(0.01) {
                    // The talker leaves, rejoins at once, or joins.
                    let isThere = buffers[id] != nil
                    if isThere, random.chance(0.5) {
                        buffers[id] = nil
                    } else if isThere {
                        buffers[id]?.reset()
                    } else {
                        buffers[id] = JitterBuffer()
                    }
                    starts[id] = tick
                }
                guard let start = starts[id], buffers[id] != nil else { continue }
                let samples = (0..<1_024).map { tones[talker](Int(tick - start) * 1_024 + $0) }
                let origin = Int64(truncatingIfNeeded: seed &* 1_000_003) * start
                buffers[id]?.push(samples, timestampMs: origin + TalkFormat.milliseconds(tick: tick - start), arrivalUs: now)
            }
            mixer.beginTick(buffers.keys.sorted().map { id in Mixer.Input(id: id, block: buffers[id]?.pull(nowUs: now) ?? .silence) })
            heard += mixer.mix().samples
        }
        #expect(Signal.jumps(heard, over: 0.05).isEmpty)
        #expect(Signal.rms(heard) > -40)
    }

    /// Timestamps from the wall clock of a busy sender are off by up to 15 ms.
    @Test func stampsThatJitter() {
        var line = Line(seconds: 30)
        var random = Seeded(seed: 5)
        for index in line.runs.indices { line.runs[index].timestampMs += Int64.random(in: -15...15, using: &random) }
        line.play(Voice.tone(440))
        #expect(line.buffer.counters.lost < 48_000 / 4 && Signal.longestSilence(line.output(5, 29)) < 96, "\(line.buffer.counters)")
        #expect(line.kinds[(47 * 5)..<(47 * 29)].allSatisfy { $0 == .played })
    }

    /// An hour with a talker's clock half a percent off and 20 ms of jitter.
    @Test(arguments: [0.995, 1.005]) func anHourOfDrift(_ speed: Double) {
        var line = Line(seconds: 3_600 * speed, speed: speed, jitterMs: 20)
        line.keepsOutput = false
        // A square wave is always loud and cheap to make.
        line.play { $0 & 64 == 0 ? 0.1 : -0.1 }
        let counters = line.buffer.counters
        #expect(counters.dropped == 0 && counters.underruns <= 2 && counters.lost == 0 && counters.resyncs == 0, "\(counters)")
        // Skips the first ten seconds, in which the buffer adapts.
        let delays = line.delays.dropFirst(470)
        #expect(delays.count > 165_000 && delays.allSatisfy { (20...110).contains($0) }, "\(delays.min() ?? 0)…\(delays.max() ?? 0)")
        #expect(abs(counters.corrected - 3_600 * 240) < 20_000, "\(counters.corrected)")
    }
}
