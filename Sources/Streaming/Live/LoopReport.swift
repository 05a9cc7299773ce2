package import Health
package import Relay
import ServerConfiguration

/// The load and lag of one event loop, taken by the loop once a second. A value, for frequent readers of figures.
package struct LoopReport: Sendable {
    /// By the loop's clock; nil before the first second.
    package private(set) var atMs: Int64?
    package private(set) var connections: [SessionSnapshot.Transport: Int] = [:]
    /// Since the start.
    package private(set) var traffic: [SessionSnapshot.Transport: LoopFigures.Traffic] = [:]
    /// The next five figures cover the streams whose home is this loop. `liveStreams` have a publisher; `viewers` are those on all loops.
    package private(set) var liveStreams = 0
    package private(set) var viewers = 0
    package private(set) var ringBytes = 0
    package private(set) var cachedBytes = 0
    package private(set) var verdicts: [StreamVerdict: Int] = [:]
    /// Since the start.
    package private(set) var relay = RelayFigures.Values()
    /// Streams with figures of their own, and how many more there were.
    package private(set) var shown: [ShownStream] = []
    package private(set) var leftOut = 0

    /// Most streams with figures of their own, of all loops.
    package static let mostShown = 200

    package init() {}

    /// On the loop.
    init(
        atMs: Int64, _ figures: LoopFigures, ended: [SessionSnapshot.Transport: LoopFigures.Traffic], _ relay: RelayLoop,
        shown patterns: [StreamPattern]
    ) {
        self.atMs = atMs
        self.connections = figures.connections
        self.traffic = ended.merging(figures.traffic) { ended, present in
            var sum = ended
            sum += present
            return sum
        }
        self.relay = relay.figures.values
        for stream in relay.streamSnapshots() {
            if case .live = stream.phase { self.liveStreams += 1 }
            self.viewers += stream.viewers
            self.ringBytes += stream.ringBytes
            self.cachedBytes += stream.cachedBytes
            if let verdict = stream.health?.verdict { self.verdicts[verdict, default: 0] += 1 }
            guard !patterns.isEmpty, patterns.contains(where: { $0.matches(stream.path) }) else { continue }
            if self.shown.count < Self.mostShown { self.shown.append(ShownStream(stream)) } else { self.leftOut += 1 }
        }
    }
}

/// Figures of one stream that `metrics.streams` names. A value.
package struct ShownStream: Sendable {
    package let path: String
    package let isLive: Bool
    package let viewers: Int
    /// Bytes of media from its publishers, since the stream was made.
    package let bytesIn: UInt64
    package let bitsPerSecond: Int
    package let framesPerSecond: Double
    /// Nil: not judged.
    package let verdict: StreamVerdict?

    init(_ stream: StreamSnapshot) {
        self.path = stream.path
        if case .live = stream.phase { self.isLive = true } else { self.isLive = false }
        self.viewers = stream.viewers
        self.bytesIn = stream.meter.bytesIn
        self.bitsPerSecond = stream.meter.videoBitsPerSecond + stream.meter.audioBitsPerSecond
        self.framesPerSecond = stream.meter.framesPerSecond
        self.verdict = stream.health?.verdict
    }
}
