/// The audio format of a talk channel. It is 48 kHz, mono, in ticks of 1,024 samples, the size of an AAC frame.
package enum TalkFormat {
    /// Hz.
    package static let sampleRate = 48_000
    /// Samples of a tick.
    package static let blockSamples = 1_024

    /// When a tick is due: microseconds after tick 0, rounded down. Exact for as long as any server runs.
    package static func microseconds(tick: Int64) -> Int64 { Self.boundedTick(tick) * 64_000 / 3 }

    /// The timestamp of a tick in an RTMP message: milliseconds after tick 0, rounded down.
    package static func milliseconds(tick: Int64) -> Int64 { Self.boundedTick(tick) * 64 / 3 }

    /// Clamps to 47,000 years of ticks either way.
    private static func boundedTick(_ tick: Int64) -> Int64 { max(-(1 << 46), min(1 << 46, tick)) }

    /// Samples in a number of milliseconds.
    static func samples(ms: Int) -> Int { ms * 48 }

    /// A clock's microseconds as samples.
    static func samples(us: Int64) -> Int64 { Self.bounded(us) * 6 / 125 }

    /// Clamps values of peers and clocks so that arithmetic cannot overflow. The range is 35 years of microseconds either way.
    static func bounded(_ value: Int64) -> Int64 { max(-(1 << 50), min(1 << 50, value)) }
}

/// A tick of one voice: 1,024 samples, 1.0 at full scale.
///
/// A plain value.
package struct TalkBlock: Sendable, Equatable {
    package enum Kind: Sendable, Equatable {
        /// The talker's own audio.
        case played
        /// Partly made up, because audio was missing.
        case concealed
        /// All zero.
        case silent
    }

    /// Always ``TalkFormat/blockSamples``.
    package let samples: [Float]
    package let kind: Kind

    /// Shared by all silent talkers.
    package static let silence = TalkBlock(samples: Array(repeating: 0, count: TalkFormat.blockSamples), kind: .silent)

    /// Pads with zeros and drops surplus samples.
    package init(samples: [Float], kind: Kind = .played) {
        let count = TalkFormat.blockSamples
        if samples.count == count {
            self.samples = samples
        } else {
            self.samples = Array(samples.prefix(count)) + Array(repeating: 0, count: max(0, count - samples.count))
        }
        self.kind = kind
    }
}
