/// Mixes a tick of the talkers' blocks: of all talkers, and of all but one.
///
/// One per room, a plain value. Within a tick call ``beginTick(_:)``, then each wanted mix once: each has a limiter whose state carries over from tick to
/// tick. The sum itself is not limited.
///
/// A mix without one talker sums the others instead of subtracting one from the full sum. With the handful of talkers of a room that costs next to
/// nothing, and the listener's own voice is absent, not just 40 dB down.
package struct Mixer: Sendable {
    /// A talker's part in a tick.
    package struct Input: Sendable {
        package var id: ParticipantID
        package var block: TalkBlock
        /// A factor, 0…``Mixer/maxGain``.
        package var gain: Float
        package var isMuted: Bool

        package init(id: ParticipantID, block: TalkBlock, gain: Float = 1, isMuted: Bool = false) {
            self.id = id
            self.block = block
            self.gain = gain
            self.isMuted = isMuted
        }
    }

    /// A tick of a mix.
    package struct Output: Sendable, Equatable {
        /// ``TalkFormat/blockSamples`` of them, within ±1.
        package var samples: [Float]
        /// Whether all samples are exactly zero.
        package var isSilent: Bool

        static let silence = Output(samples: TalkBlock.silence.samples, isSilent: true)
    }

    /// 18 dB.
    package static let maxGain: Float = 8
    /// Samples over which a voice that suddenly stops fades out: 5 ms.
    private static let tail = 240

    /// A talker's samples in this tick, with its gain.
    private struct Voice: Sendable {
        var id: ParticipantID
        var samples: [Float]
    }

    private var voices: [Voice] = []
    private var gains: [ParticipantID: Float] = [:]
    private var ends: [ParticipantID: Float] = [:]
    private var full = SoftLimiter()
    private var limiters: [ParticipantID: SoftLimiter] = [:]
    private var duckers: [ParticipantID: Ducker] = [:]

    package init() {}

    /// Starts a tick. Changes of gain, muting included, are ramped over the block so that they do not click. A talker missing from the
    /// inputs fades out in 5 ms.
    package mutating func beginTick(_ inputs: [Input]) {
        var (gains, ends) = ([ParticipantID: Float](), [ParticipantID: Float]())
        self.voices.removeAll(keepingCapacity: true)
        for input in inputs where gains[input.id] == nil {
            let target = input.isMuted || !input.gain.isFinite ? 0 : min(max(input.gain, 0), Self.maxGain)
            let before = self.gains[input.id] ?? target
            gains[input.id] = target
            guard input.block.kind != .silent, before > 0 || target > 0 else {
                self.rest(input.id)
                continue
            }
            let samples = Self.scaled(input.block.samples, before, target)
            ends[input.id] = samples.last
            self.voices.append(Voice(id: input.id, samples: samples))
        }
        for id in self.ends.keys where gains[id] == nil { self.rest(id) }
        self.gains = gains
        self.ends = ends
    }

    /// Whether the talker is audible in this tick. If not, the mix without it sounds like the full one.
    package func contributes(_ id: ParticipantID) -> Bool { self.voices.contains { $0.id == id } }

    /// Mixes everyone. Once in a tick.
    package mutating func mix() -> Output {
        guard !self.voices.isEmpty else {
            self.full = SoftLimiter()
            return .silence
        }
        return Self.limited(Self.sum(self.voices), &self.full)
    }

    /// Mixes everyone but one; 18 dB lower when `isDucked`, with ramps. Once in a tick for each `id`.
    package mutating func mix(without id: ParticipantID, isDucked: Bool = false) -> Output {
        let others = self.voices.filter { $0.id != id }
        var ducker = self.duckers[id] ?? Ducker()
        defer { self.duckers[id] = isDucked || !ducker.isIdle ? ducker : nil }
        guard !others.isEmpty else {
            self.limiters[id] = nil
            ducker.skip(TalkFormat.blockSamples, isActive: isDucked)
            return .silence
        }
        var samples = Self.sum(others)
        ducker.process(&samples, isActive: isDucked)
        return Self.limited(samples, &self.limiters[id, default: SoftLimiter()])
    }

    /// Drops the state of the mix without `id`, which has no listener any more.
    package mutating func forget(_ id: ParticipantID) {
        self.limiters[id] = nil
        self.duckers[id] = nil
    }

    /// Fades a voice that stops in mid-wave from its last sample to zero, to avoid a click.
    private mutating func rest(_ id: ParticipantID) {
        guard let end = self.ends[id], abs(end) > 1e-4 else { return }
        var samples = TalkBlock.silence.samples
        for index in 0..<Self.tail { samples[index] = end * Float(Self.tail - index - 1) / Float(Self.tail) }
        self.voices.append(Voice(id: id, samples: samples))
    }

    private static func scaled(_ samples: [Float], _ from: Float, _ to: Float) -> [Float] {
        if from == 1, to == 1 { return samples }
        var scaled = samples
        let slope = (to - from) / Float(samples.count)
        scaled.withUnsafeMutableBufferPointer { scaled in
            for index in scaled.indices { scaled[index] *= from + slope * Float(index + 1) }
        }
        return scaled
    }

    private static func sum(_ voices: [Voice]) -> [Float] {
        var sum = voices[0].samples
        for voice in voices.dropFirst() { Loudness.add(voice.samples, to: &sum) }
        return sum
    }

    private static func limited(_ sum: [Float], _ limiter: inout SoftLimiter) -> Output {
        var samples = sum
        limiter.process(&samples)
        return Output(samples: samples, isSilent: Loudness.isWithin(samples, 0))
    }
}
