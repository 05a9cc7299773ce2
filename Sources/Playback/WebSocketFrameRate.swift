import Support

/// Limits the rate at which a WebSocket player may send frames, not the total. A player that answers pings for days stays; a flood is cut.
///
/// Players have nothing to send but pings and pongs. A value without a clock.
struct WebSocketFrameRate {
    /// Nil until the first frame.
    private var bucket: TokenBucket?

    static let perSecond = 200
    /// Largest burst of frames.
    static let atOnce = 1_000

    /// Whether this many more frames are within the rate. `nowMs` is any steady clock.
    mutating func admits(_ frames: Int, nowMs: Int64) -> Bool {
        guard frames > 0 else { return true }
        let nowNs = UInt64(max(0, nowMs)) * 1_000_000
        var bucket = self.bucket ?? TokenBucket(rate: Double(Self.perSecond), burst: Double(Self.atOnce), nowNs: nowNs)
        defer { self.bucket = bucket }
        return (0..<frames).allSatisfy { _ in bucket.acquire(nowNs: nowNs).isAllowed }
    }
}
