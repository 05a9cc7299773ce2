package import ServerConfiguration
package import Support
import Synchronization

/// HLS sessions by token, and by id. Any thread.
package final class HLSSessions: Sendable {
    private struct Rows {
        var byToken: [String: HLSSession] = [:]
        var byID: [UInt64: HLSSession] = [:]

        var values: Dictionary<String, HLSSession>.Values { self.byToken.values }
    }

    private let rows = Mutex(Rows())

    package init() {}

    func find(_ token: String) -> HLSSession? { self.rows.withLock { $0.byToken[token] } }
    func session(_ id: UInt64) -> HLSSession? { self.rows.withLock { $0.byID[id] } }
    func add(_ session: HLSSession) {
        self.rows.withLock {
            $0.byToken[session.token] = session
            $0.byID[session.id] = session
        }
    }
    func remove(_ session: HLSSession) {
        self.rows.withLock {
            $0.byToken[session.token] = nil
            $0.byID[session.id] = nil
        }
    }

    /// Whether somebody plays the stream in this form.
    package func play(_ path: String, _ container: ServerConfig.HLS.Container) -> Bool {
        self.rows.withLock { rows in rows.values.contains { $0.path.exact == path.exact && $0.container == container } }
    }

    /// Whether all players have been sent the ends of their streams; those of these streams are not asked.
    package func haveFinished(but paths: Set<ExactText>, nowMs: Int64) -> Bool {
        self.rows.withLock { rows in rows.values.allSatisfy { paths.contains($0.path.exact) || $0.hasFinished(nowMs: nowMs) } }
    }

    /// Ends all sessions of the stream, each on its loop.
    package func end(_ path: String, _ reason: CloseReason) {
        for session in self.rows.withLock({ rows in rows.values.filter { $0.path.exact == path.exact } }) { session.end(reason) }
    }
}
