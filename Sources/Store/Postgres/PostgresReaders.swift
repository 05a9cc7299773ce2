import Dispatch
import Rooms
import Synchronization

/// Connections that read, each on a queue of its own. A read takes the one with the fewest reads waiting. They connect when they are first
/// used, and again after a failure.
final class PostgresReaders: Sendable {
    private struct Reader: Sendable {
        let connection: PostgresConnection
        let queue: DispatchQueue
    }

    private let readers: [Reader]
    /// Reads running and waiting at each.
    private let waiting: Mutex<[Int]>

    private let node: Int64?

    /// `node`: this node's number where several share the database.
    init(_ options: PostgresConnection.Options, count: Int, node: Int64? = nil) {
        self.node = node
        self.readers = (0..<count).map { number in
            Reader(connection: PostgresConnection(options), queue: DispatchQueue(label: "earshot.store.reader\(number)"))
        }
        self.waiting = Mutex(Array(repeating: 0, count: count))
    }

    func read<T: Sendable>(inTransaction: Bool = true, _ body: @Sendable @escaping (StoreAccess) throws -> T) async throws -> T {
        let (number, reader) = self.acquire()
        defer { self.waiting.withLock { $0[number] -= 1 } }
        return try await withCheckedThrowingContinuation { continuation in
            reader.queue.async { continuation.resume(with: Result { try self.readTwice(reader.connection, inTransaction, body) }) }
        }
    }

    /// Blocks.
    func readNow<T>(_ body: (StoreAccess) throws -> T) throws -> T {
        let (number, reader) = self.acquire()
        defer { self.waiting.withLock { $0[number] -= 1 } }
        return try reader.queue.sync { try self.read(reader.connection, true, body) }
    }

    private func acquire() -> (Int, Reader) {
        self.waiting.withLock { waiting in
            var best = 0
            for number in waiting.indices where waiting[number] < waiting[best] { best = number }
            waiting[best] += 1
            return (best, self.readers[best])
        }
    }

    /// Once more on a new connection if the former one turns out to have ended meanwhile.
    private func readTwice<T>(_ connection: PostgresConnection, _ inTransaction: Bool, _ body: (StoreAccess) throws -> T) throws -> T {
        let wasOpen = connection.isOpen
        do {
            return try self.read(connection, inTransaction, body)
        } catch let failure as PostgresFailure where wasOpen && failure.endsConnection && !connection.isOpen {
            return try self.read(connection, inTransaction, body)
        }
    }

    /// In a transaction several statements see one state of the database.
    private func read<T>(_ connection: PostgresConnection, _ inTransaction: Bool, _ body: (StoreAccess) throws -> T) throws -> T {
        try connection.open()
        guard inTransaction else { return try body(StoreAccess(connection, node: self.node)) }
        do {
            try connection.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            let value = try body(StoreAccess(connection, node: self.node))
            try connection.run("COMMIT")
            try connection.flush()
            return value
        } catch {
            if connection.isOpen { connection.rollback() }
            throw error
        }
    }

    /// Each closes after the read that it is at.
    func close() { for reader in self.readers { reader.queue.async { reader.connection.end() } } }
}
