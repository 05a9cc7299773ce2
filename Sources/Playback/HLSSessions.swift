package import Support
import Synchronization

/// HLS sessions by token. Any thread.
package final class HLSSessions: Sendable {
    private let rows = Mutex<[String: HLSSession]>([:])  // compares tokens

    package init() {}

    func find(_ token: String) -> HLSSession? { self.rows.withLock { $0[token] } }
    func add(_ session: HLSSession) { self.rows.withLock { $0[session.token] = session } }
    func remove(_ session: HLSSession) { self.rows.withLock { $0[session.token] = nil } }

    /// Whether somebody plays the stream.
    package func play(_ path: String) -> Bool { self.rows.withLock { rows in rows.values.contains { $0.path.exact == path.exact } } }

    /// Whether all players have been sent the ends of their streams; those of these streams are not asked.
    package func haveFinished(but paths: Set<ExactText>, nowMs: Int64) -> Bool {
        self.rows.withLock { rows in rows.values.allSatisfy { paths.contains($0.path.exact) || $0.hasFinished(nowMs: nowMs) } }
    }

    /// Ends all sessions of the stream, each on its loop.
    package func end(_ path: String, _ reason: CloseReason) {
        for session in self.rows.withLock({ rows in rows.values.filter { $0.path.exact == path.exact } }) { session.end(reason) }
    }
}
