/// Who opens a store.
package enum StoreUser: Sendable {
    /// The one server that has it: inspects the files of a folder, takes its node's membership in a database.
    case server
    /// Beside a server that has it. For tests, which run on where a killed server had been.
    case second
    /// A command, with or without a server that runs on it.
    case tool
}

extension StoreLocation {
    /// Opens or creates the store. The lock is the server's: held until it ends. Blocks. Throws ``StoreError``.
    package func open(as user: StoreUser) throws -> (store: any RoomStore, lock: StoreLock?) {
        switch self {
        case .folder(let directory):
            // A command holds it while it opens, so that no server starts while the files are inspected. A running server has inspected them.
            let isWanted = user == .server || user == .tool && !StoreLock.isHeld(directory: directory)
            let lock = isWanted ? try StoreLock(directory: directory, store: SQLiteStore.path(in: directory)) : nil
            defer { withExtendedLifetime(lock) {} }
            return (try SQLiteStore(directory: directory, isAlone: lock != nil), user == .server ? lock : nil)
        case .postgres(let location):
            let lock = user == .server ? try location.folder.map { try StoreLock(directory: $0, store: $0) } : nil
            return (try PostgresStore(location, isNode: user == .server), lock)
        }
    }

    /// Whether it is a folder that a server uses now.
    package var isOfRunningServer: Bool {
        guard case .folder(let directory) = self else { return false }
        return StoreLock.isHeld(directory: directory)
    }
}
