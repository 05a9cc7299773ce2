package import Media
import NIOCore

/// A stream's last minutes, second by second, for charts. It distinguishes a bad uplink from a bad viewer. Owned by the home loop; a value.
///
/// Nothing is recorded while nobody publishes.
package struct StreamHistory: Sendable {
    package struct Second: Sendable, Equatable {
        /// The server's monotonic clock, milliseconds.
        package let atMs: Int64
        package let videoBitsPerSecond: Int
        package let audioBitsPerSecond: Int
        package let framesPerSecond: Double
        /// Mean deviation of arrival from timestamp, milliseconds; RFC 3550 §6.4.1.
        package let arrivalJitterMs: Double
        /// Between the newest two keyframes, by timestamp.
        package let keyframeIntervalMs: Int64?
        package let viewers: Int
    }

    /// Seconds added up, for averages over longer times.
    package struct Sum: Sendable, Equatable {
        package var seconds = 0
        /// The seconds' frame rates, added up.
        package var framesPerSecond = 0.0
        /// The seconds' jitter in milliseconds, added up.
        package var arrivalJitterMs = 0.0
        /// The longest interval; 0 when none is known.
        package var longestKeyframeIntervalMs: Int64 = 0

        package init() {}

        package mutating func add(_ other: Sum) {
            self.seconds += other.seconds
            self.framesPerSecond += other.framesPerSecond
            self.arrivalJitterMs += other.arrivalJitterMs
            self.longestKeyframeIntervalMs = max(self.longestKeyframeIntervalMs, other.longestKeyframeIntervalMs)
        }

        mutating func add(_ second: Second) {
            self.seconds += 1
            self.framesPerSecond += second.framesPerSecond
            self.arrivalJitterMs += second.arrivalJitterMs
            self.longestKeyframeIntervalMs = max(self.longestKeyframeIntervalMs, second.keyframeIntervalMs ?? 0)
        }
    }

    /// Kept seconds: five minutes.
    package static let capacity = 300

    private var ring: [Second] = []
    private var next = 0
    private var startMs: Int64?
    private var videoBytes = 0
    private var audioBytes = 0
    private var frames = 0
    private var jitterMs = 0.0
    /// Kept apart for audio and video, whose timestamps need not begin together.
    private var lastTransitMs: (audio: Int64?, video: Int64?) = (nil, nil)

    /// Oldest first.
    package var seconds: [Second] {
        self.ring.count < Self.capacity ? self.ring : Array(self.ring[self.next...] + self.ring[..<self.next])
    }

    /// The seconds that ended after this time, on the same clock.
    package func sum(after ms: Int64) -> Sum {
        var sum = Sum()
        let count = self.ring.count
        for back in 1...max(1, count) where count > 0 {
            let second = self.ring[(self.next + count - back) % count]
            guard second.atMs > ms else { break }
            sum.add(second)
        }
        return sum
    }

    /// `isSide`: the message has only tracks besides the default one, which count as bytes alone.
    package mutating func count(_ frame: Frame, isSide: Bool = false, nowMs: Int64) {
        switch frame.kind {
        case .video:
            self.videoBytes += frame.payload.readableBytes
            if frame.tag.flags.contains(.coded), !isSide { self.frames += 1 }
        case .audio: self.audioBytes += frame.payload.readableBytes
        case .data: return
        }
        if isSide { return }
        let transitMs = nowMs - frame.timestamp
        if let last = frame.kind == .video ? self.lastTransitMs.video : self.lastTransitMs.audio {
            self.jitterMs += (Double(abs(transitMs - last)) - self.jitterMs) / 16
        }
        if frame.kind == .video { self.lastTransitMs.video = transitMs } else { self.lastTransitMs.audio = transitMs }
    }

    /// Closes the second when it is over; call several times a second.
    package mutating func tick(_ meter: StreamMeter, viewers: Int, isLive: Bool, nowMs: Int64) {
        guard let startMs = self.startMs else {
            if isLive { self.startMs = nowMs }
            return
        }
        guard nowMs - startMs >= 1_000 else { return }
        let length = Double(nowMs - startMs) / 1_000
        let second = Second(
            atMs: nowMs, videoBitsPerSecond: Int(Double(self.videoBytes * 8) / length),
            audioBitsPerSecond: Int(Double(self.audioBytes * 8) / length),
            framesPerSecond: (Double(self.frames) / length * 10).rounded() / 10, arrivalJitterMs: (self.jitterMs * 10).rounded() / 10,
            keyframeIntervalMs: meter.keyframeIntervalMs, viewers: viewers)
        if self.ring.count < Self.capacity {
            self.ring.append(second)
        } else {
            self.ring[self.next] = second
            self.next = (self.next + 1) % Self.capacity
        }
        self.videoBytes = 0
        self.audioBytes = 0
        self.frames = 0
        self.startMs = isLive ? nowMs : nil
    }

    /// A new publisher has a clock of its own.
    package mutating func publisherChanged() {
        self.lastTransitMs = (nil, nil)
        self.jitterMs = 0
    }
}
