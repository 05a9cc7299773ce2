import SignalCheck
@testable import Talk
import Testing

@Suite struct MixerTests {
    static let tones: [(id: String, frequency: Double)] = [("a", 440), ("b", 700), ("c", 1_130)]

    /// The blocks of a signal, one per tick.
    static func blocks(_ ticks: Int, _ signal: (Int) -> Float) -> [TalkBlock] {
        (0..<ticks).map { tick in TalkBlock(samples: (0..<1_024).map { signal(tick * 1_024 + $0) }) }
    }

    static func inputs(_ tick: Int, amplitude: Float = 0.1) throws -> [Mixer.Input] {
        try Self.tones.map { tone in
            let samples = (0..<1_024).map { Voice.tone(tone.frequency, amplitude)(tick * 1_024 + $0) }
            return Mixer.Input(id: try ParticipantID(tone.id), block: TalkBlock(samples: samples))
        }
    }

    @Test func everyoneButMe() throws {
        var mixer = Mixer()
        var heard: [String: [Float]] = [:]
        for tick in 0..<60 {
            mixer.beginTick(try Self.inputs(tick))
            heard["", default: []] += mixer.mix().samples
            for (id, _) in Self.tones {
                let output = mixer.mix(without: try ParticipantID(id))
                #expect(!output.isSilent && output.samples.count == 1_024)
                heard[id, default: []] += output.samples
            }
            // An absent participant hears exactly the full mix.
            let other = mixer.mix(without: try ParticipantID("nobody")).samples
            #expect(other == Array(heard["", default: []].suffix(1_024)))
        }
        for (id, samples) in heard {
            for (other, frequency) in Self.tones {
                let level = Signal.level(samples, frequency: frequency)
                if id == other {
                    #expect(level < -110, "\(id) hears itself: \(level)")
                } else {
                    #expect(abs(level - -20) < 0.1, "\(level)")
                }
            }
        }
    }

    @Test func gainAndMuteSlide() throws {
        var mixer = Mixer()
        let id = try ParticipantID("a")
        var heard: [Float] = []
        let block = Self.blocks(12, Voice.tone(440, 0.2))
        for tick in 0..<12 {
            let gain: Float = tick < 3 ? 1 : tick < 6 ? 2 : 0.5
            mixer.beginTick([Mixer.Input(id: id, block: block[tick], gain: gain, isMuted: tick >= 9)])
            let output = mixer.mix()
            #expect(output.isSilent == (tick > 9))
            #expect(mixer.contributes(id) == (tick <= 9))
            heard += output.samples
        }
        #expect(Signal.jumps(heard, over: 0.03).isEmpty)
        let level = { (tick: Int) in Signal.rms(heard[(tick * 1_024)..<((tick + 1) * 1_024)]) }
        #expect(abs(level(4) - level(1) - 6.02) < 0.3 && abs(level(8) - level(1) + 6.02) < 0.3)
        // A huge gain is clamped, and NaN counts as 0.
        mixer.beginTick([
            Mixer.Input(id: id, block: block[0], gain: 1e9), Mixer.Input(id: try ParticipantID("b"), block: block[1], gain: .nan),
        ])
        let mixed1 = mixer.mix()
        #expect(mixed1.samples.allSatisfy { abs($0) <= 1 })
    }

    /// A gain changes linearly and is reached at the block's last sample.
    @Test func gainsSlideSampleBySample() throws {
        var mixer = Mixer()
        let id = try ParticipantID("a")
        let block = TalkBlock(samples: [Float](repeating: 0.1, count: 1_024))
        for _ in 0..<3 {
            mixer.beginTick([Mixer.Input(id: id, block: block)])
            _ = mixer.mix()
        }
        mixer.beginTick([Mixer.Input(id: id, block: block, gain: 2)])
        let sliding = mixer.mix().samples
        for index in 0..<1_024 { #expect(abs(sliding[index] - 0.1 * (1 + Float(index + 1) / 1_024)) < 1e-5) }
        mixer.beginTick([Mixer.Input(id: id, block: block, gain: 2)])
        let settled = mixer.mix().samples
        #expect(settled.allSatisfy { abs($0 - 0.2) < 1e-5 })
    }

    @Test func oneWhoVanishesDoesNotClick() throws {
        var mixer = Mixer()
        let id = try ParticipantID("a")
        // The block ends at its peak.
        let block = TalkBlock(samples: (0..<1_024).map { Float($0) / 1_023 * 0.4 })
        mixer.beginTick([Mixer.Input(id: id, block: block)])
        var heard = mixer.mix().samples
        mixer.beginTick([])
        heard += mixer.mix().samples
        #expect(Signal.jumps(heard, over: 0.01).isEmpty && heard.last == 0)
        mixer.beginTick([])
        let mixed2 = mixer.mix()
        #expect(mixed2 == Mixer.Output(samples: TalkBlock.silence.samples, isSilent: true))
    }

    @Test func silenceIsSilence() throws {
        var mixer = Mixer()
        mixer.beginTick([
            Mixer.Input(id: try ParticipantID("a"), block: .silence), Mixer.Input(id: try ParticipantID("b"), block: .silence),
        ])
        let (full, other) = (mixer.mix(), mixer.mix(without: try ParticipantID("a")))
        #expect(full.isSilent && other.isSilent)
        #expect(try !mixer.contributes(ParticipantID("a")))
        // Blocks of the wrong length are padded or cut; a repeated talker counts once.
        let short = TalkBlock(samples: Array(repeating: 0.1, count: 3)), long = TalkBlock(samples: Array(repeating: 0.1, count: 3_000))
        #expect(short.samples.count == 1_024 && long.samples.count == 1_024)
        mixer.beginTick([Mixer.Input(id: try ParticipantID("c"), block: long), Mixer.Input(id: try ParticipantID("c"), block: long)])
        let mixed3 = mixer.mix()
        #expect(mixed3.samples.allSatisfy { abs($0 - 0.1) < 1e-6 })
    }

    @Test func ducking() throws {
        var mixer = Mixer()
        let me = try ParticipantID("me")
        var heard: [Float] = []
        for (tick, block) in Self.blocks(100, Voice.tone(440, 0.3)).enumerated() {
            mixer.beginTick([Mixer.Input(id: try ParticipantID("a"), block: block)])
            heard += mixer.mix(without: me, isDucked: (20..<50).contains(tick)).samples
        }
        let level = { (tick: Int) in Signal.rms(heard[(tick * 1_024)..<((tick + 3) * 1_024)]) }
        #expect(abs(level(30) - level(10) + 18) < 0.3 && abs(level(90) - level(10)) < 0.1)
        // Ducking fades down in 40 ms and up in 300 ms, without a step.
        #expect(abs(level(23) - level(30)) < 0.3 && level(56) < level(10) - 2 && level(66) > level(10) - 0.3)
        #expect(Signal.jumps(heard, over: 0.03).isEmpty)
    }

    @Test func thirtyTalkersDoNotWrap() throws {
        var mixer = Mixer()
        for tick in 0..<20 {
            mixer.beginTick(
                try (0..<30).map { talker in
                    let samples = (0..<1_024).map { Voice.tone(200 + 37 * Double(talker), 1)(tick * 1_024 + $0) }
                    return Mixer.Input(id: try ParticipantID("t\(talker)"), block: TalkBlock(samples: samples))
                })
            let mixed4 = mixer.mix()
            #expect(mixed4.samples.allSatisfy { abs($0) <= 1 })
        }
    }
}

@Suite struct SoftLimiterTests {
    static func limited(_ signal: (Int) -> Float, blocks: Int = 60) -> [Float] {
        var limiter = SoftLimiter()
        var output: [Float] = []
        for block in 0..<blocks {
            var samples = (0..<1_024).map { signal(block * 1_024 + $0) }
            limiter.process(&samples)
            output += samples
        }
        return output
    }

    @Test func quietIsUntouched() {
        let tone = Voice.tone(440, 0.5)
        #expect(Self.limited(tone) == (0..<(60 * 1_024)).map(tone))
    }

    @Test(arguments: [0.6, 1, 2, 8, 30] as [Float], [100.0, 440, 3_000]) func loudStaysATone(_ amplitude: Float, _ frequency: Double) {
        let output = Self.limited(Voice.tone(frequency, amplitude))
        #expect(output.allSatisfy { abs($0) <= 1 })
        let rest = Array(output[10_240..<58_240])
        let level = Signal.level(rest, frequency: frequency)
        #expect(level > -5 && level < 0, "\(level)")
        for harmonic in [2.0, 3, 4, 5] {
            let distortion = Signal.level(rest, frequency: frequency * harmonic) - level
            #expect(distortion < -40, "\(harmonic): \(distortion)")
        }
        // Loud input stays loud.
        #expect(output.map(abs).max() ?? 0 > 0.5)
    }

    /// A peak of exactly −6 dBFS needs no gain; the next larger one does.
    @Test func theThresholdItselfIsQuiet() {
        for (peak, isIdle) in [(SoftLimiter.threshold, true), (SoftLimiter.threshold.nextUp, false)] {
            var limiter = SoftLimiter()
            // NaN makes the limiter examine each sample.
            var samples: [Float] = [.nan, peak]
            limiter.process(&samples)
            #expect(limiter.isIdle == isIdle && samples[0] == 0 && abs(samples[1] - 0.5) < 1e-6, "\(peak): \(samples)")
        }
    }

    @Test func itComesBack() {
        let output = Self.limited { $0 < 4_800 ? Voice.tone(440, 4)($0) : Voice.tone(440, 0.25)($0) }
        let level = Signal.rms(output[(4_800 + 24_000)..<(4_800 + 28_800)])
        #expect(abs(level - -15.05) < 0.1, "\(level)")
        #expect(Signal.rms(output[4_900..<7_000]) < -16)
    }

    @Test(arguments: [Float.nan, .infinity, -.infinity, 3e38, -1e-37]) func whateverItIs(_ value: Float) {
        var limiter = SoftLimiter()
        var samples = [Float](repeating: value, count: 1_000) + [0.1]
        limiter.process(&samples)
        limiter.process(&samples)
        #expect(samples.allSatisfy { abs($0) <= 1 })
        var none: [Float] = []
        limiter.process(&none)
    }
}

@Suite struct LevelMeterTests {
    @Test func levels() {
        var meter = LevelMeter()
        #expect(meter.rmsDB == -100 && meter.peakDB == -100 && !meter.isSpeaking)
        for block in MixerTests.blocks(10, Voice.tone(440, 0.5)) { _ = meter.add(block) }
        #expect(abs(meter.rmsDB - -9.03) < 0.1 && abs(meter.peakDB - -6.02) < 0.1)
        for _ in 0..<60 { _ = meter.add(.silence) }
        #expect(meter.rmsDB == -100 && meter.peakDB == -100)
    }

    @Test func speakingHangsOn() {
        var meter = LevelMeter()
        let loud = TalkBlock(samples: Array(repeating: 0.1, count: 1_024))
        let soft = TalkBlock(samples: Array(repeating: 0.004, count: 1_024))
        // One loud block is not speech; a second in a row is.
        #expect([loud, .silence, loud].map { meter.add($0) } == [false, false, false] && !meter.isSpeaking)
        #expect([loud].map { meter.add($0) } == [true] && meter.isSpeaking)
        // Between the thresholds the state does not change.
        #expect((0..<100).allSatisfy { _ in !meter.add(soft) } && meter.isSpeaking)
        #expect((0..<19).allSatisfy { _ in !meter.add(.silence) } && meter.isSpeaking)
        #expect([TalkBlock.silence].map { meter.add($0) } == [true] && !meter.isSpeaking)
        #expect((0..<100).allSatisfy { _ in !meter.add(soft) } && !meter.isSpeaking)
    }
}
