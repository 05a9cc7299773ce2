/// Decides when to send a publisher the rate that its uplink carried: every five seconds while the uplink is too slow or stalls. A value; the time is
/// passed in, in milliseconds of any steady clock.
package struct UplinkAdvice: Sendable {
    private var reportedMs: Int64?

    package static let intervalMs: Int64 = 5_000

    package init() {}

    /// The bits per second to send now; nil: nothing.
    package mutating func due(_ judge: StreamJudge, nowMs: Int64) -> Int? {
        guard let bits = judge.carriedBitsPerSecond else { return nil }
        if let reportedMs, nowMs - reportedMs < Self.intervalMs { return nil }
        self.reportedMs = nowMs
        return bits
    }
}

extension StreamJudge {
    private static let carriedSeconds = 5

    /// Rate of the media in the last seconds, if the uplink carries too little; nil otherwise.
    package var carriedBitsPerSecond: Int? {
        guard self.health.reasons.contains(where: { $0.code == .mediaBehindClock || $0.code == .uplinkStalls }) else { return nil }
        let seconds = self.last(Self.carriedSeconds)
        let bytes = seconds.reduce(0) { $0 + $1.video.bytes + $1.audio.bytes }
        let length = seconds.reduce(0) { $0 + $1.lengthMs }
        return length > 0 ? Int(Double(bytes) * 8_000 / Double(length)) : nil
    }
}
