import Dispatch
import Rooms
import Synchronization

/// Renews a node's lease, on a connection and a queue of its own: a long transaction must not end it.
final class NodeLease: Sendable {
    private let connection: PostgresConnection
    private let queue = DispatchQueue(label: "earshot.store.lease")
    private let isOver = Mutex(false)
    private let number: Int64
    private let incarnation: Int64

    private static let everySeconds = 3

    init(_ place: PostgresPlace, number: Int64, incarnation: Int64) {
        self.number = number
        self.incarnation = incarnation
        self.connection = PostgresConnection(
            .init(url: place.url, prepares: place.prepares, name: "earshot \(place.node) lease", patienceMs: 3_000))
        self.schedule()
    }

    private func schedule() {
        self.queue.asyncAfter(deadline: .now() + .seconds(Self.everySeconds)) { [weak self] in
            guard let self, !self.isOver.withLock({ $0 }) else { return }
            // One that fails is tried again; the writer's own failures tell of a database that is away.
            try? self.renew()
            self.schedule()
        }
    }

    private func renew() throws {
        try self.connection.open()
        _ = try self.connection.change(
            """
            UPDATE nodes SET expires_at = clock_timestamp() + make_interval(secs => ?1)
            WHERE number = ?2 AND EXISTS (SELECT 1 FROM fences WHERE node = ?2 AND incarnation = ?3)
            """, [Membership.leaseSeconds, self.number, self.incarnation])
    }

    /// Waits for a renewal that is under way, which would lengthen the lease once more; not for long.
    func stop() {
        self.isOver.withLock { $0 = true }
        let done = DispatchSemaphore(value: 0)
        self.queue.async {
            self.connection.close()
            done.signal()
        }
        _ = done.wait(timeout: .now() + 1)
    }
}
