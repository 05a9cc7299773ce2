package import HTTPAPI
import Health
package import Packaging
package import Rooms
import Synchronization

/// Counts for the metrics only. Any thread; locked only briefly, never per frame.
package final class MetricFigures: Sendable {
    struct Values {
        var commits = Histogram(
            boundsMicros: [500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 5_000_000])
        var failedCommits: UInt64 = 0
        var events: [RoomEvent.Kind: UInt64] = [:]
        /// The largest number of bytes that links were seen to have received.
        var pulledBytes: UInt64 = 0
    }

    /// Viewers by WebRTC, since the start.
    package struct WebRTC: Sendable {
        package var offers: UInt64 = 0
        package var connected: UInt64 = 0
        /// Those that never connected, by the reason's word.
        package var failed: [String: UInt64] = [:]
        package var repeatedPackets: UInt64 = 0
        package var keyframeRequests: UInt64 = 0
        /// Datagrams of nobody here, and those that the kernel did not take.
        package var strangeDatagrams: UInt64 = 0
        package var lostDatagrams: UInt64 = 0
        /// Streams that are encoded anew at present.
        package var encoders = 0

        package init() {}
    }

    /// Figures that other parts keep. Asked from any thread.
    package struct Sources: Sendable {
        /// When the TLS certificate expires, in seconds since 1970.
        package var certificateEnds: @Sendable () -> Int64? = { nil }
        /// Bytes that HLS windows hold.
        package var windowBytes: @Sendable () -> Int = { 0 }
        /// Viewers by WebRTC.
        package var webrtc: @Sendable () -> WebRTC = { WebRTC() }
        /// What viewers by WebRTC get of a stream's pictures; nil while there are none.
        package var treatment: @Sendable (String) -> PictureTreatment? = { _ in nil }
        /// How many of a stream's viewers by WebRTC have a line that does not take it.
        package var badLines: @Sendable (String) -> Int = { _ in 0 }
        /// Streams that links publish, and the bytes that they have received.
        package var links: @Sendable () -> (publishing: Int, receivedBytes: UInt64) = { (0, 0) }
    }

    package let requests = RequestFigures()
    package let calls = CallFigures()
    let page = SharedPage()
    private let values = Mutex(Values())
    private let sources = Mutex(Sources())

    package init() {}

    var current: Values { self.values.withLock { $0 } }

    // MARK: Counting

    /// Counts a transaction of the store. `micros`: its duration.
    package func committed(micros: Int64, isStored: Bool) {
        self.values.withLock { values in
            values.commits.observe(micros: micros)
            if !isStored { values.failedCommits += 1 }
        }
    }

    package func happened(_ events: [EventMark]) {
        self.values.withLock { values in
            for event in events { values.events[event.kind, default: 0] += 1 }
        }
    }

    /// Bytes that links have received so far; never falls.
    func pulled(_ bytes: UInt64) -> UInt64 {
        self.values.withLock { values in
            values.pulledBytes = max(values.pulledBytes, bytes)
            return values.pulledBytes
        }
    }

    // MARK: Sources

    /// Adds sources. Call while the server is put together.
    package func add(_ change: (inout sending Sources) -> Void) { self.sources.withLock { change(&$0) } }

    var certificateEnds: Int64? { self.sources.withLock { $0 }.certificateEnds() }
    var windowBytes: Int { self.sources.withLock { $0 }.windowBytes() }
    var webrtc: WebRTC { self.sources.withLock { $0 }.webrtc() }
    func treatment(_ path: String) -> PictureTreatment? { self.sources.withLock { $0 }.treatment(path) }
    func badLines(_ path: String) -> Int { self.sources.withLock { $0 }.badLines(path) }
    var links: (publishing: Int, receivedBytes: UInt64) { self.sources.withLock { $0 }.links() }
}
