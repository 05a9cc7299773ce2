import SignalCheck
import Talk
import Testing

/// One talker through a jitter buffer, in simulated time.
@Suite struct JitterBufferTests {
    /// Runs of every codec's length: Opus 20 ms, AAC at 48 and 16 kHz, MP3, Nellymoser, G.711, Speex.
    @Test(arguments: [256, 960, 1_024, 1_254, 1_536, 2_016, 3_072]) func cleanInputIsPlayedAsItIs(_ run: Int) {
        var line = Line(seconds: 20, run: run)
        let tone = Voice.tone(440)
        line.play(tone)
        // The delay shrinks slowly, because a tone has no pause to shorten.
        #expect(line.delays[47...].allSatisfy { $0 < 85 })
        let late = line.delays[(47 * 14)..<(47 * 19)]
        #expect(late.allSatisfy { $0 <= 40 && $0 >= 20 }, "\(late.max() ?? 0)")
        let counters = line.buffer.counters
        #expect(counters.runs == Int64(line.runs.count))
        #expect(counters.lost == 0 && counters.dropped == 0 && counters.underruns == 1 && counters.resyncs == 0, "\(counters)")
        // Nothing is concealed except at the end.
        let ending = line.kinds.lastIndex(of: .played) ?? 0
        #expect(line.kinds[5..<ending].allSatisfy { $0 == .played } && line.kinds.suffix(10).allSatisfy { $0 == .silent })
        // Once settled, the output is exactly the input.
        let heard = line.output(16, 18)
        let lag = (0..<20_000).first(where: { lag in (0..<500).allSatisfy { tone(16 * 48_000 - lag + $0) == heard[$0] } })
        guard let lag else {
            Issue.record("not the samples that were sent")
            return
        }
        #expect((0..<heard.count).allSatisfy { tone(16 * 48_000 - lag + $0) == heard[$0] })
    }

    /// A talker whose clock is a little slow eats up what the buffer holds. That much is no reason to slow an unbroken sound down as well:
    /// each correction changes its pitch.
    @Test func aSmallShortageIsLeftAlone() {
        var (slow, exact) = (Line(seconds: 30, speed: 0.9999), Line(seconds: 30))
        slow.play(Voice.tone(440))
        exact.play(Voice.tone(440))
        let corrected = (slow.buffer.counters.corrected, exact.buffer.counters.corrected)
        #expect(corrected.0 < corrected.1, "\(corrected)")
    }

    @Test(arguments: 1...6 as ClosedRange<UInt64>) func clicksSurviveJitter(_ seed: UInt64) {
        var line = Line(seconds: 40, jitterMs: 20, seed: seed)
        line.play(Voice.clicks(every: 12_000, from: 6_000))
        let clicks = Signal.clicks(line.output, threshold: 0.3)
        #expect(clicks.count == 159, "\(clicks.count)")
        let delays = clicks.enumerated().map { (Double($1) - line.sent($0 * 12_000 + 12_000)) / 48 }
        #expect(delays.percentile(0.5) <= 60 && delays.percentile(0.99) <= 100, "\(delays.percentile(0.5)) \(delays.percentile(0.99))")
        #expect(delays.min() ?? 0 > 0)
    }

    @Test(arguments: [0.995, 1.005]) func aTalkersClockDrifts(_ speed: Double) {
        var line = Line(seconds: 60, speed: speed)
        line.play(Voice.tone(1_000))
        let counters = line.buffer.counters
        #expect(counters.dropped == 0 && counters.underruns == 1 && counters.concealed < 3_000 && counters.lost == 0, "\(counters)")
        #expect(abs(counters.corrected - 60 * 240) < 3_000, "\(counters.corrected)")
        #expect(line.delays[100..<2_700].allSatisfy { (15...95).contains($0) }, "\(line.delays.max() ?? 0)")
        // The output is only the tone, half a percent off in pitch.
        for second in stride(from: 22.0, to: 58, by: 5) {
            let heard = line.output(second, second + 1)
            let level = Signal.level(heard, frequency: 1_000 * speed)
            #expect(abs(level - -10.46) < 1, "\(level)")
            for other in [500, 900, 1_100, 1_500, 2_000, 3_000, 5_000] as [Double] {
                #expect(Signal.level(heard, frequency: other) < -65, "\(other) Hz: \(Signal.level(heard, frequency: other))")
            }
            #expect(Signal.jumps(heard, over: 0.05).isEmpty)
        }
    }

    /// The delay that the buffer adds on a clean line, measured by clicks after the first second. The codecs add another 43 ms.
    @Test func delayOfACleanLine() {
        var line = Line(seconds: 60)
        line.play(Voice.clicks(every: 4_800, from: 48_000))
        let clicks = Signal.clicks(line.output, threshold: 0.3)
        // The last click is near the end, where concealment repeats it.
        #expect((590...592).contains(clicks.count), "\(clicks.count)")
        let delays = clicks.prefix(590).enumerated().map { (Double($1) - line.sent(48_000 + $0 * 4_800)) / 48 }
        #expect(delays.percentile(0.5) <= 40 && delays.percentile(0.99) <= 70, "\(delays.percentile(0.5)) \(delays.percentile(0.99))")
        #expect(line.buffer.counters.jitterMs < 1)
        // The clicks leave pauses, so the delay is minimal after 4 s.
        #expect(delays[30...].allSatisfy { $0 <= 35 }, "\(delays[30...].max() ?? 0)")
    }

    /// One run is 150 ms late. The delay grows by that much at once, without a loss, and shrinks again within half a minute.
    @Test func lateAudioIsWaitedFor() {
        var line = Line(seconds: 60)
        let late = line.runs.firstIndex { $0.arrivalUs >= 10_000_000 } ?? 0
        let free = (late < line.runs.count ? line.runs[late].arrivalUs : 0) + 150_000
        for index in late..<line.runs.count { line.runs[index].arrivalUs = max(line.runs[index].arrivalUs, free) }
        line.play(Voice.clicks(every: 4_800, from: 48_000))
        let (counters, delays) = (line.buffer.counters, line.delays)
        #expect(counters.dropped == 0 && counters.underruns == 2 && counters.lost == 0, "\(counters)")
        #expect(Signal.clicks(line.output, threshold: 0.3, apart: 960).count >= 590)
        // Tick 470 is at 10.03 s.
        #expect(delays[480..<700].allSatisfy { (150...200).contains($0) }, "\(delays[480]) \(delays[699])")
        #expect(delays[2_400..<2_780].allSatisfy { $0 <= 40 }, "\(delays[2_400])")
    }

    /// Playback begins in the tick in which the first sample is due. A sample due at that tick's end belongs to the next one.
    @Test(arguments: [(38_667, 0), (38_688, 60)] as [(Int64, Double)]) func playbackBeginsWithinItsTick(_ nowUs: Int64, _ delayMs: Double) {
        var buffer = JitterBuffer()
        buffer.push(Array(repeating: 0.1, count: 1_024), timestampMs: 0, arrivalUs: 0)
        // With 1,024 samples, the tick ends at 2,880, which is 60 ms, or one sample later.
        _ = buffer.pull(nowUs: nowUs)
        #expect(buffer.counters.delayMs == delayMs && buffer.counters.played == Int64(delayMs / 60))
    }

    private static let voice = Voice.spoken(seconds: 20, seed: 9)

    /// A signal like a voice over a line with jitter and clock drift. Each half second matches the original.
    @Test(arguments: [(0.0, 1.0), (20, 1), (40, 1.001)]) func aVoiceStaysItself(_ jitterMs: Double, _ speed: Double) {
        var line = Line(seconds: 20, speed: speed, jitterMs: jitterMs, seed: 3)
        let voice = Self.voice
        line.play { $0 < voice.count ? voice[$0] : 0 }
        // A drifting talker's windows slide against the room's.
        let matches = Signal.matches(Array(voice[96_000...]), in: Array(line.output[96_000...]), window: 24_000, lags: -1_200...4_800)
        #expect(matches.count >= 34)
        let values = matches.map(\.value)
        if speed == 1 {
            // In the first seconds the delay shrinks in pauses, which moves the speech around them closer together.
            #expect(values.dropFirst(10).allSatisfy { $0 >= 0.98 } && values.filter { $0 < 0.9 }.count <= 2, "\(values)")
        } else {
            #expect(values.percentile(0.5) > 0.95, "\(values)")
        }
    }

    /// Concealment lasts at most 60 ms for a tone and 20 ms for noise, and only fades.
    @Test(arguments: [true, false]) func whatIsMadeUpFades(_ isTone: Bool) {
        var random = Seeded(seed: 4)
        let noise = (0..<97_000).map { _ in Float.random(in: -0.3...0.3, using: &random) }
        var line = Line(seconds: 2)
        line.play { isTone ? Voice.tone(180)($0) : noise[$0] }
        let end = (line.output.lastIndex { $0 != 0 } ?? 0) + 1
        let made = Int(line.buffer.counters.concealed)
        #expect(made <= (isTone ? 2_882 : 962) && made >= (isTone ? 2_800 : 900), "\(made)")
        let levels = stride(from: 0, to: made - 480, by: isTone ? 480 : 240).map { start in
            Signal.rms(line.output[(end - made + start)..<(end - made + start + (isTone ? 480 : 240))])
        }
        #expect(zip(levels, levels.dropFirst()).allSatisfy { $1 < $0 + 1 } && (levels.last ?? 0) < (levels.first ?? 0) - 6, "\(levels)")
        if isTone { #expect(Signal.jumps(line.output, over: 0.02).isEmpty) }
    }

    /// A room of four talkers for ten minutes, each with its own clock and network. No buffer underruns.
    @Test func tenMinutesOfARoom() throws {
        var lines = (0..<4).map { talker -> Line in
            var line = Line(
                seconds: 600, run: [1_024, 960, 3_072, 1_254][talker], speed: [1, 1.0002, 0.9998, 1.001][talker], jitterMs: 20,
                originMs: Int64(talker) * 77_777, phaseUs: Int64(talker) * 5_000, seed: UInt64(talker))
            line.runs.removeAll { $0.arrivalUs > 599_000_000 }
            return line
        }
        let wave = (0..<4_096).map { Float($0 & 32 == 0 ? 0.2 : -0.2) }
        let ids = (0..<4).map { participant("t\($0)") }
        var (mixer, next, quiet) = (Mixer(), [0, 0, 0, 0], 0)
        for tick in 0..<Int64(599 * 48_000 / 1_024) {
            let now = TalkFormat.microseconds(tick: tick)
            mixer.beginTick(
                lines.indices.map { talker in
                    while next[talker] < lines[talker].runs.count, lines[talker].runs[next[talker]].arrivalUs <= now {
                        let run = lines[talker].runs[next[talker]]
                        lines[talker].buffer.push(
                            Array(wave[0..<run.count]), timestampMs: run.timestampMs, arrivalUs: run.arrivalUs)
                        next[talker] += 1
                    }
                    return Mixer.Input(id: ids[talker], block: lines[talker].buffer.pull(nowUs: now))
                })
            if tick % 8 == 0, mixer.mix().isSilent { quiet += 1 }
        }
        #expect(quiet <= 2)
        for line in lines {
            let counters = line.buffer.counters
            #expect(counters.underruns <= 1 && counters.dropped == 0 && counters.lost == 0 && counters.concealed < 3_000, "\(counters)")
        }
    }
}

/// A server stalls, and all audio of the stall arrives at once.
@Suite struct JitterBufferStallTests {
    /// Missed ticks run after the stall as if on time. No figure is negative and nothing counts as lost.
    @Test(arguments: [0.3, 0.9]) func ticksAreMadeUpFor(_ stall: Double) {
        var buffer = JitterBuffer()
        var next = 0
        var least = 0.0
        let stalled = 5_000_000..<Int64(5_000_000 + stall * 1_000_000)
        for tick in 0..<(47 * 15) as Range<Int64> {
            let dueUs = TalkFormat.microseconds(tick: tick)
            // Ticks due in the stall run at its end, when its audio has arrived.
            let realUs = stalled.contains(dueUs) ? stalled.upperBound : dueUs
            while Int64(next) * 64_000 / 3 + 7_000 <= realUs {
                let cameUs = Int64(next) * 64_000 / 3 + 7_000
                buffer.push(
                    Array(repeating: 0.1, count: 1_024), timestampMs: Int64(next) * 64 / 3,
                    arrivalUs: stalled.contains(cameUs) ? stalled.upperBound : cameUs)
                next += 1
            }
            _ = buffer.pull(nowUs: dueUs)
            least = min(least, buffer.counters.delayMs)
        }
        #expect(least >= 0, "\(least)")
        let counters = buffer.counters
        #expect(counters.lost == 0 && counters.dropped == 0, "\(counters)")
        #expect(
            counters.played + Int64(counters.depthMs * 48) + counters.corrected >= Int64(next) * 1_024 - 4_800, "\(counters) of \(next)")
    }

    /// Audio that was left undecoded counts as dropped, not lost, and playing continues after it.
    @Test func whatIsLeftOutIsDropped() {
        var buffer = JitterBuffer()
        for run in 0..<47 as Range<Int64> {
            buffer.push(Array(repeating: 0.1, count: 1_024), timestampMs: run * 64 / 3, arrivalUs: run * 64_000 / 3)
            _ = buffer.pull(nowUs: run * 64_000 / 3)
        }
        let before = buffer.counters
        for run in 47..<80 as Range<Int64> { buffer.leaveOut(1_024, timestampMs: run * 64 / 3, arrivalUs: 1_700_000) }
        buffer.push(Array(repeating: 0.1, count: 1_024), timestampMs: 80 * 64 / 3, arrivalUs: 1_700_000)
        let after = buffer.counters
        #expect(after.lost == before.lost && after.dropped - before.dropped >= 33 * 1_024, "\(after)")
    }

    /// A recording keeps half a minute. The missed ticks after the stall play it.
    @Test func aRecordingKeepsALongStall() {
        var buffer = JitterBuffer()
        buffer.keep(ms: 31_000)
        var next: Int64 = 0
        var heard = 0
        let stalled = 3_000_000..<Int64(11_000_000)
        for tick in 0..<(47 * 20) as Range<Int64> {
            let dueUs = TalkFormat.microseconds(tick: tick)
            let realUs = stalled.contains(dueUs) ? stalled.upperBound : dueUs
            while next * 64_000 / 3 + 7_000 <= realUs {
                let cameUs = next * 64_000 / 3 + 7_000
                buffer.push(
                    Array(repeating: 0.1, count: 1_024), timestampMs: next * 64 / 3,
                    arrivalUs: stalled.contains(cameUs) ? stalled.upperBound : cameUs)
                next += 1
            }
            heard += buffer.pull(nowUs: dueUs).samples.count { $0 != 0 }
        }
        #expect(buffer.counters.dropped == 0 && buffer.counters.lost == 0, "\(buffer.counters)")
        #expect(heard >= 47 * 20 * 1_024 - 12_000, "\(heard) of \(47 * 20 * 1_024)")
    }
}

@Suite struct JitterLimitsTests {
    @Test func defaultsAndBounds() {
        #expect(JitterLimits() == JitterLimits(minMs: 20, startMs: 60, maxMs: 200))
        let least = JitterLimits(minMs: 1, startMs: 1, maxMs: 1), most = JitterLimits(minMs: 999, startMs: 999, maxMs: 999)
        #expect([least.minMs, least.startMs, least.maxMs] == [20, 20, 20] && [most.minMs, most.startMs, most.maxMs] == [200, 200, 200])
    }
}

@Suite struct LevelSettingsTests {
    @Test func bounds() {
        let settings = LevelSettings(onDB: -50, offDB: -40, attackBlocks: 0, hangBlocks: -1)
        #expect(settings.offDB == -50 && settings.attackBlocks == 1 && settings.hangBlocks == 0)
        #expect(LevelSettings() == LevelSettings(onDB: -45, offDB: -52, attackBlocks: 2, hangBlocks: 19))
    }
}
