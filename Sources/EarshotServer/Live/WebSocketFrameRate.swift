/// Judges a WebSocket player by how fast it sends frames, not by how many it has sent: one that answers pings for days stays, a flood ends.
///
/// A player has nothing to say but pings and pongs. A value without a clock.
struct WebSocketFrameRate {
    /// Nil until it has said something.
    private var bucket: TokenBucket?

    static let perSecond = 200
    /// More than these at once are a flood, too.
    static let atOnce = 1_000

    /// Whether so many more frames may have come by now. `nowMs` is any steady clock.
    mutating func admits(_ frames: Int, nowMs: Int64) -> Bool {
        guard frames > 0 else { return true }
        let nowNs = UInt64(max(0, nowMs)) * 1_000_000
        var bucket = self.bucket ?? TokenBucket(rate: Double(Self.perSecond), burst: Double(Self.atOnce), nowNs: nowNs)
        defer { self.bucket = bucket }
        return (0..<frames).allSatisfy { _ in bucket.take(nowNs: nowNs).isAllowed }
    }
}
