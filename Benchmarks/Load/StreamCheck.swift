/// A viewer's findings about the frames of its stream. A plain value, one per viewer.
struct StreamCheck {
    /// Complete frames, and the bytes of their tag bodies.
    private(set) var messages = 0
    private(set) var bytes = 0
    /// Frames with a wrong byte or a wrong length.
    private(set) var damaged = 0
    /// Frames of another room.
    private(set) var foreign = 0
    private(set) var video = TrackCheck()
    private(set) var audio = TrackCheck()

    /// Only frames received from here on count as measured. Nanoseconds.
    var windowStartNs = UInt64.max
    var windowEndNs = UInt64.max
    private(set) var windowMessages = 0
    private(set) var windowBytes = 0
    private(set) var latency = Histogram()
    private(set) var firstKeyframeNs: UInt64?
    /// Arrival of the first frame. Nanoseconds.
    private var firstNs: UInt64?

    /// Restarts the measurement at this time.
    mutating func restart(_ nowNs: UInt64) {
        self.windowStartNs = nowNs
        self.windowEndNs = .max
        self.windowMessages = 0
        self.windowBytes = 0
        self.latency = Histogram()
    }

    /// Returns the latencies so far and starts a new count.
    mutating func popLatency() -> Histogram {
        defer { self.latency = Histogram() }
        return self.latency
    }

    /// Counts one complete coded frame.
    mutating func received(
        _ stamp: Stamp?, isVideo: Bool, isKeyframe: Bool, isIntact: Bool, length: Int, timestamp: UInt32, room: Int, nowNs: UInt64
    ) {
        let firstNs = self.firstNs ?? nowNs
        self.firstNs = firstNs
        self.messages += 1
        self.bytes += length
        if nowNs >= self.windowStartNs && nowNs < self.windowEndNs {
            self.windowMessages += 1
            self.windowBytes += length
        }
        guard let stamp, isIntact, stamp.length == length else {
            self.damaged += 1
            return
        }
        guard stamp.room == room else {
            self.foreign += 1
            return
        }
        if isVideo {
            self.video.received(stamp.sequence, timestamp: timestamp)
            if isKeyframe && self.firstKeyframeNs == nil { self.firstKeyframeNs = nowNs }
        } else {
            self.audio.received(stamp.sequence, timestamp: timestamp)
        }
        // Frames sent before the window, or before the viewer was there, came from a cache or a backlog: that is not delivery latency.
        // Those sent within the window count however late they arrive.
        if stamp.sentNs >= max(self.windowStartNs, firstNs) && stamp.sentNs < self.windowEndNs {
            self.latency.record(microseconds: (nowNs &- stamp.sentNs) / 1000)
        }
    }
}

/// The order of one track's frames.
struct TrackCheck {
    /// The sequence number after the highest seen; `nil` before the first frame.
    private(set) var next: UInt64?
    /// Frames that never arrived between the first and the last that did.
    private(set) var missing = 0
    private(set) var duplicates = 0
    private(set) var outOfOrder = 0
    private(set) var backwardTimestamps = 0
    /// Bit n: the frame n before the highest has arrived.
    private var recent: UInt64 = 0
    private var lastTimestamp: UInt32 = 0

    mutating func received(_ sequence: UInt64, timestamp: UInt32) {
        defer { self.lastTimestamp = timestamp }
        guard let next = self.next else {
            self.next = sequence + 1
            self.recent = 1
            return
        }
        if Int32(bitPattern: timestamp &- self.lastTimestamp) < 0 { self.backwardTimestamps += 1 }
        if sequence >= next {
            let skipped = sequence - next
            self.missing += Int(skipped)
            self.recent = skipped >= 63 ? 1 : self.recent << (skipped + 1) | 1
            self.next = sequence + 1
            return
        }
        let age = next - 1 - sequence
        if age < 64, self.recent & 1 << age == 0 {
            self.recent |= 1 << age
            self.missing -= 1
            self.outOfOrder += 1
        } else {
            self.duplicates += 1
        }
    }
}
