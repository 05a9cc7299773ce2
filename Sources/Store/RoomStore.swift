package import Rooms

/// The database of rooms, streams, events, tokens and webhook deliveries. It runs transactions and reads; the statements are extensions of
/// ``StoreAccess``. One writer; readers run beside it.
package protocol RoomStore: AnyObject, Sendable {
    /// Problems found at the start and their remedies, one log line each.
    var notices: [String] { get }

    /// Runs a transaction, committed and on disk when this returns. At most one at a time; blocks.
    func transaction<T>(_ body: (StoreAccess) throws -> T) throws -> T
    /// Runs transactions of a start, and those that waited for their turn in vain once more.
    func insistently<T>(_ body: () throws -> T) throws -> T
    /// Whether a transaction whose commit got no answer is in the store. Throws while nobody can tell; blocks.
    func wasCommitted(_ lost: CommitLost) throws -> Bool
    /// Reads committed data without blocking the caller.
    func read<T: Sendable>(_ body: @Sendable @escaping (StoreAccess) throws -> T) async throws(RegistryError) -> T
    /// The same, each statement by itself: without the waits that a transaction costs, and without its one view of the data.
    func readSeparately<T: Sendable>(_ body: @Sendable @escaping (StoreAccess) throws -> T) async throws(RegistryError) -> T
    /// Reads committed data; blocks. For start-up and the command line.
    func readNow<T>(_ body: (StoreAccess) throws -> T) throws -> T
    /// Reads with the writer's connection, without a hop to a reader; blocks. For the registry's queue.
    func writerRead<T>(_ body: (StoreAccess) throws -> T) throws -> T
    /// Removes overwritten data from all files, where the store is a file. Throws while it is being read; blocks.
    func emptyLog() throws

    /// This server's membership among the nodes that share the store; nil if it has the store to itself.
    var membership: Membership? { get }
    /// Takes the membership again after another node has ended this one's work. Throws while that is not possible; blocks.
    func rejoin() throws

    /// Whether the error says that another process has taken this one's membership.
    func isDisplaced(by error: any Error) -> Bool
    /// Converts an error into an explanation for the operator.
    func explain(_ error: any Error) -> StoreError
    /// Closes all connections. Later reads and writes fail. Returns any problem. `emptiesLog`: leaves no file but the store's own, where it is
    /// a file.
    @discardableResult
    func close(emptiesLog: Bool) -> String?
}

extension RoomStore {
    package var membership: Membership? { nil }
    package func rejoin() throws {}
    package func isDisplaced(by error: any Error) -> Bool { false }
    package func readSeparately<T: Sendable>(_ body: @Sendable @escaping (StoreAccess) throws -> T) async throws(RegistryError) -> T {
        try await self.read(body)
    }
    package func insistently<T>(_ body: () throws -> T) throws -> T { try body() }

    @discardableResult
    package func close() -> String? { self.close(emptiesLog: true) }
}
