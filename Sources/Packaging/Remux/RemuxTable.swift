package import Delivery
package import HLS
package import Logging
package import Relay
package import RoomStore
import Rooms
package import ServerConfiguration
package import Support
import Synchronization

/// The running remuxers, by stream. Any thread.
package final class RemuxTable: Sendable {
    let config: Live<ServerConfig>
    let rooms: RoomRegistry
    let streams: LiveStreams
    let ledger: MemoryLedger
    let limits: LimitHits
    /// Bytes of HLS windows only; ``ledger`` includes them.
    let windows = MemoryLedger(limit: .max)
    let log: Logger
    /// Whether somebody plays the stream's HLS.
    let isPlayed: @Sendable (String) -> Bool
    /// Streams of MP4 pieces, under the paths of their source streams.
    package let pieces = StreamRegistry(isListed: false)
    private let rows = Mutex<NameTable<StreamRemuxer>>([:])

    package init(
        _ config: Live<ServerConfig>, _ rooms: RoomRegistry, _ streams: LiveStreams, _ ledger: MemoryLedger, limits: LimitHits,
        log: Logger, isPlayed: @escaping @Sendable (String) -> Bool
    ) {
        self.config = config
        self.rooms = rooms
        self.streams = streams
        self.ledger = ledger
        self.limits = limits
        self.log = log
        self.isPlayed = isPlayed
    }

    /// Bytes of HLS segments and parts in memory.
    package var windowBytes: Int { self.windows.used }

    var all: [StreamRemuxer] { self.rows.withLock { Array($0.values) } }

    /// The stream's remuxer, if it runs or ended a moment ago.
    func find(_ path: String) -> StreamRemuxer? { self.rows.withLock { $0[path] } }

    /// Returns the live stream's remuxer, started if needed. For a stream that just ended, returns the old one; nil: there is neither.
    package func use(_ path: String) async throws(HLSError) -> StreamRemuxer? {
        let there = self.rows.withLock { rows -> StreamRemuxer? in
            rows[path]?.touch()
            return rows[path]
        }
        if let there, !there.isOver { return there }
        let acquired = await self.streams.onHome(of: path) { home, stream -> (stream: Relay.Stream, keyframeIntervalMs: Int64?)? in
            guard let snapshot = home.snapshot(of: stream)?.stream, snapshot.phase != .idle else { return nil }
            return (self.streams.registry.acquire(path, on: home), snapshot.meter.keyframeIntervalMs)
        }
        guard let acquired, let (stream, keyframeIntervalMs) = acquired else { return there }
        let made = try StreamRemuxer(self, stream, keyframeIntervalMs: keyframeIntervalMs)
        let winner = self.rows.withLock { rows -> StreamRemuxer in
            // Another caller was faster.
            if let other = rows[path], other !== there { return other }
            rows[path] = made
            return made
        }
        if winner === made { await made.start() } else { self.streams.registry.release(stream) }
        return winner
    }

    /// Starts the stream's remuxer if HLS is always on. Does not block.
    package func publishBegan(_ stream: Relay.Stream) {
        guard self.config.hls.always else { return }
        let path = stream.path
        Task { _ = try? await self.use(path) }
    }

    /// Stops remuxers that nobody watches.
    package func dropUnwatched() async {
        for remuxer in self.all { await remuxer.dropIfUnwatched() }
    }

    /// Stops all remuxers and releases them, because each holds the table.
    package func stop() {
        for remuxer in self.rows.exchange([:]).values { Task { await remuxer.stop() } }
    }

    /// Removes an idle remuxer. Returns false if it was used meanwhile.
    func remove(_ remuxer: StreamRemuxer, ifIdleAt nowMs: Int64, idleMs: Int64 = StreamRemuxer.idleMs) -> Bool {
        self.rows.withLock { rows in
            guard remuxer.isIdle(nowMs: nowMs, idleMs: idleMs) else { return false }
            if rows[remuxer.path] === remuxer { rows[remuxer.path] = nil }
            return true
        }
    }

    func remove(_ remuxer: StreamRemuxer) {
        self.rows.withLock { rows in
            if rows[remuxer.path] === remuxer { rows[remuxer.path] = nil }
        }
    }
}
