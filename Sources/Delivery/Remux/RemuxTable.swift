package import HLS
import Relay
import Synchronization

/// The running remuxers, by stream. Any thread.
package final class RemuxTable: Sendable {
    private let rows = Mutex<[String: StreamRemuxer]>([:])

    var all: [StreamRemuxer] { self.rows.withLock { Array($0.values) } }

    /// The stream's remuxer, if it runs or ended a moment ago.
    func find(_ path: String) -> StreamRemuxer? { self.rows.withLock { $0[path] } }

    /// Returns the live stream's remuxer, started if needed. For a stream that just ended, returns the old one; nil: there is neither.
    package func use(_ path: String, of core: ServerCore) async throws(HLSError) -> StreamRemuxer? {
        let there = self.rows.withLock { rows -> StreamRemuxer? in
            rows[path]?.touch()
            return rows[path]
        }
        if let there, !there.isOver { return there }
        let acquired = await core.onHome(of: path) { home, stream -> (stream: Relay.Stream, keyframeIntervalMs: Int64?)? in
            guard let snapshot = home.snapshot(of: stream)?.stream, snapshot.phase != .idle else { return nil }
            return (core.registry.acquire(path, on: home), snapshot.meter.keyframeIntervalMs)
        }
        guard let acquired, let (stream, keyframeIntervalMs) = acquired else { return there }
        let made = try StreamRemuxer(core: core, stream: stream, keyframeIntervalMs: keyframeIntervalMs)
        let winner = self.rows.withLock { rows -> StreamRemuxer in
            // Another caller was quicker.
            if let other = rows[path], other !== there { return other }
            rows[path] = made
            return made
        }
        if winner === made { await made.start() } else { core.registry.release(stream) }
        return winner
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
