package import HLS
package import Logging
package import Relay
import Rooms
package import ServerConfiguration
package import Streaming
package import Support
import Synchronization

/// The running remuxers, by the form of segments and the stream. Any thread.
package final class RemuxTable: Sendable {
    let config: Live<ServerConfig>
    let rooms: any LiveRooms
    let streams: LiveStreams
    let ledger: MemoryLedger
    let limits: LimitHits
    /// Bytes of HLS windows only; ``ledger`` includes them.
    let windows = MemoryLedger(limit: .max)
    let log: Logger
    /// Whether somebody plays the stream's HLS in this form.
    let isPlayed: @Sendable (String, ServerConfig.HLS.Container) -> Bool
    /// Streams of MP4 pieces, under the paths of their source streams.
    package let pieces = StreamRegistry(isListed: false)
    private let rows = Mutex<[ServerConfig.HLS.Container: NameTable<StreamRemuxer>]>([:])

    package init(
        _ config: Live<ServerConfig>, _ rooms: any LiveRooms, _ streams: LiveStreams, _ ledger: MemoryLedger, limits: LimitHits,
        log: Logger, isPlayed: @escaping @Sendable (String, ServerConfig.HLS.Container) -> Bool
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

    var all: [StreamRemuxer] { self.rows.withLock { rows in rows.values.flatMap { Array($0.values) } } }

    /// The stream's remuxer of a form, if it runs or ended a moment ago. `nil`: the form of the settings.
    func find(_ path: String, _ container: ServerConfig.HLS.Container? = nil) -> StreamRemuxer? {
        let container = container ?? self.config.hls.container
        return self.rows.withLock { $0[container]?[path] }
    }

    /// The stream's remuxer of a form, if it runs; in use from now on.
    package func running(_ path: String, as container: ServerConfig.HLS.Container) -> StreamRemuxer? {
        guard let found = self.find(path, container), !found.isOver else { return nil }
        found.touch()
        return found
    }

    /// Returns the live stream's remuxer of a form, started if needed; `nil`: the form of the settings. Each form has its own, which costs nothing
    /// until somebody asks. For a stream that just ended, returns the old one; nil: there is neither.
    package func use(_ path: String, as container: ServerConfig.HLS.Container? = nil) async throws(HLSError) -> StreamRemuxer? {
        let container = container ?? self.config.hls.container
        let there = self.rows.withLock { rows -> StreamRemuxer? in
            rows[container]?[path]?.touch()
            return rows[container]?[path]
        }
        if let there, !there.isOver { return there }
        let acquired = await self.streams.onHome(of: path) { home, stream -> (stream: Relay.Stream, keyframeIntervalMs: Int64?)? in
            guard let snapshot = home.snapshot(of: stream)?.stream, snapshot.phase != .idle else { return nil }
            return (self.streams.registry.acquire(path, on: home), snapshot.meter.keyframeIntervalMs)
        }
        guard let acquired, let (stream, keyframeIntervalMs) = acquired else { return there }
        let made = try StreamRemuxer(self, stream, as: container, keyframeIntervalMs: keyframeIntervalMs)
        let winner = self.rows.withLock { rows -> StreamRemuxer in
            // Another caller was faster.
            if let other = rows[container]?[path], other !== there { return other }
            rows[container, default: [:]][path] = made
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
    package func dropUnwatched() async { for remuxer in self.all { await remuxer.dropIfUnwatched() } }

    /// Stops all remuxers and releases them, because each holds the table.
    package func stop() {
        for remuxer in self.rows.exchange([:]).values.flatMap({ Array($0.values) }) { Task { await remuxer.stop() } }
    }

    /// Removes an idle remuxer. Returns false if it was used meanwhile.
    func remove(_ remuxer: StreamRemuxer, ifIdleAt nowMs: Int64, idleMs: Int64 = StreamRemuxer.idleMs) -> Bool {
        self.rows.withLock { rows in
            guard remuxer.isIdle(nowMs: nowMs, idleMs: idleMs) else { return false }
            Self.remove(remuxer, from: &rows)
            return true
        }
    }

    func remove(_ remuxer: StreamRemuxer) { self.rows.withLock { Self.remove(remuxer, from: &$0) } }

    private static func remove(_ remuxer: StreamRemuxer, from rows: inout [ServerConfig.HLS.Container: NameTable<StreamRemuxer>]) {
        if rows[remuxer.container]?[remuxer.path] === remuxer { rows[remuxer.container]?[remuxer.path] = nil }
    }
}
