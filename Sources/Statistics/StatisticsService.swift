import Access
import Logging
import NIOCore
import Relay
import ServiceLifecycle
package import Streaming
import Support

/// Samples the event loops every ten seconds, and has the rows written. On shutdown it writes the last ones.
///
/// Before the listeners in the group, so that it stops after all connections have reported how they ended.
package struct StatisticsService: Service {
    private let statistics: Statistics
    private let streams: LiveStreams
    /// Bytes so far of the streams that links now publish here.
    private let pulls: @Sendable () -> [(path: String, bytes: UInt64)]

    package static let intervalMs: Int64 = 10_000

    package init(_ statistics: Statistics, _ streams: LiveStreams, pulls: @escaping @Sendable () -> [(path: String, bytes: UInt64)]) {
        self.statistics = statistics
        self.streams = streams
        self.pulls = pulls
    }

    package func run() async throws {
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                // At full tens of seconds, so that each sample lies within one minute.
                let restMs = Self.intervalMs - self.statistics.nowMs % Self.intervalMs
                // Cancelled: the server shuts down.
                do { try await Task.sleep(for: .milliseconds(restMs)) } catch { return }
                await self.sample(midpointAgeMs: Self.intervalMs / 2)
                await self.statistics.write()
            }
        }
        await self.sample()
        await self.statistics.stop()
    }

    /// Collects every loop's transferred bytes.
    package func sample(midpointAgeMs: Int64 = 0) async {
        self.statistics.beginSample()
        var streams: NameTable<FigureTable.Present> = [:]
        var connections: [String: Int] = [:]
        for loop in self.streams.allLoops {
            // A loop that is gone has no connections.
            let measured = try? await loop.relay.eventLoop.submit { (loop.figures(), loop.relay.arrivals(withinMs: Self.intervalMs)) }.get()
            guard let (figures, arrivals) = measured else { continue }
            for (path, arrival) in arrivals where !TalkStreamName.isTalk(path: path) { streams[path, default: .init()].arrival = arrival }
            for bytes in figures.streams.values where !TalkStreamName.isTalk(path: bytes.path) {
                streams[bytes.path, default: .init()].bytesIn &+= bytes.received
                streams[bytes.path, default: .init()].bytesOut &+= bytes.sent
            }
            for (transport, count) in figures.connections { connections[transport.rawValue, default: 0] += count }
        }
        for pull in self.pulls() { streams[pull.path, default: .init()].bytesIn &+= pull.bytes }
        for (path, viewers) in self.streams.registry.viewerCounts() where !TalkStreamName.isTalk(path: path) {
            streams[path, default: .init()].viewers = viewers
        }
        self.statistics.endSample(streams, connections: connections, midpointAgeMs: midpointAgeMs)
    }
}
