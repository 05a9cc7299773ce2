import LibC
import Rooms

/// One of the two stores of a copy, opened for it alone: no server uses it meanwhile.
struct TransferSide {
    let store: StoreAccess
    let location: StoreLocation

    /// Runs `body` and explains its errors as this store's.
    func attempt<T>(_ body: (StoreAccess) throws -> T) throws -> T {
        do {
            return try body(self.store)
        } catch {
            throw self.location.explain(error)
        }
    }
}

extension StoreLocation {
    /// A file's path, or a database's address without its password.
    var name: String {
        switch self {
        case .folder(let directory): SQLiteStore.path(in: directory)
        case .postgres(let location): location.description
        }
    }

    func explain(_ error: any Error) -> StoreError {
        switch self {
        case .folder: SQLiteStore.explain(error, path: self.name)
        case .postgres(let location): PostgresStore.explain(error, location)
        }
    }

    func isTaken(_ why: String) -> StoreError {
        StoreError(
            path: self.name, problem: "is not empty: \(why)", advice: "name an empty database, or a data directory without a store",
            isConflict: true)
    }

    private func isUsed(by whom: String) -> StoreError {
        StoreError(path: self.name, problem: "is in use by \(whom)", advice: "stop it first, then copy", isConflict: true)
    }

    private func checkSchema(_ version: Int) throws {
        guard version == StoreSchema.version else {
            throw StoreError(
                path: self.name,
                problem: version == 0
                    ? "holds no registry" : "has the schema \(version), and this version of earshot copies \(StoreSchema.version)",
                advice: version == 0
                    ? "name the data directory or the database of a server" : "start the server of this version on it once, then copy")
        }
    }

    // MARK: - Source

    /// Reads one state of the whole store, which stays as it is. No server can begin to use it meanwhile. Throws ``StoreError``.
    func reading<T>(_ body: (TransferSide) throws -> T) throws -> T {
        switch self {
        case .folder(let directory):
            if FileIdentity(path: self.name) == nil { try self.checkSchema(0) }
            let lock = try self.lock(directory)
            defer { withExtendedLifetime(lock) {} }
            return try StoreFolder(directory: directory, secrets: []).whole { store, version in
                try self.checkSchema(version)
                return try body(TransferSide(store: store, location: self))
            }
        case .postgres(let location):
            return try self.connected(location) { connection in
                let state = try PostgresSchema.state(StoreAccess(connection))
                if let objection = StoreSchema.objection(to: state, in: self.name, isDatabase: true) { throw objection }
                try self.checkSchema(state.number)
                try connection.run("BEGIN ISOLATION LEVEL REPEATABLE READ")
                try self.lockAlone(connection)
                let result = try body(TransferSide(store: StoreAccess(connection), location: self))
                connection.rollback()
                return result
            }
        }
    }

    // MARK: - Target

    /// Runs one transaction in a store that is empty, or made for it, and commits when `body` returns. Throws ``StoreError``.
    func filling<T>(_ body: (TransferSide) throws -> T) throws -> T {
        switch self {
        case .folder(let directory):
            if mkdir(directory, 0o700) != 0, errno != EEXIST { throw self.explain(FileFailure("make", directory)) }
            let lock = try self.lock(directory)
            defer { withExtendedLifetime(lock) {} }
            // A store with an older schema would be changed by opening it.
            if FileIdentity(path: self.name)?.size ?? 0 > 0 {
                try StoreFolder(directory: directory, secrets: []).whole { _, version in
                    guard version == StoreSchema.version else { throw self.isTaken("it has another schema") }
                }
            }
            let store = try SQLiteStore(directory: directory, isAlone: true)
            defer { store.close() }
            do {
                return try store.transaction { try body(TransferSide(store: $0, location: self)) }
            } catch {
                throw self.explain(error)
            }
        case .postgres(let location):
            return try self.connected(location) { connection in
                let state = try PostgresSchema.state(StoreAccess(connection))
                if let objection = StoreSchema.objection(to: state, in: self.name, isDatabase: true) { throw objection }
                guard [0, StoreSchema.version].contains(state.number) else { throw self.isTaken("it has the schema \(state.number)") }
                try PostgresSchema.migrate(.init(url: location.url, prepares: location.prepares, name: "earshot store copy"))
                try connection.begin()
                try self.lockAlone(connection)
                let result = try body(TransferSide(store: StoreAccess(connection), location: self))
                try connection.commit()
                return result
            }
        }
    }

    // MARK: - Alone

    private func lock(_ directory: String) throws -> StoreLock {
        guard !StoreLock.isHeld(directory: directory) else { throw self.isUsed(by: "a server") }
        return try StoreLock(directory: directory, store: self.name)
    }

    /// Longest wait for an answer: an index over millions of rows is written meanwhile.
    private static let patienceMs: Int64 = 600_000

    private func connected<T>(_ location: PostgresLocation, _ body: (PostgresConnection) throws -> T) throws -> T {
        let connection = PostgresConnection(
            .init(url: location.url, prepares: location.prepares, name: "earshot store copy", patienceMs: Self.patienceMs))
        defer { connection.close() }
        do {
            try connection.open()
            try PostgresStore.checkVersion(connection.serverVersion, location)
            return try body(connection)
        } catch {
            throw self.explain(error)
        }
    }

    /// Locks the nodes and their fences until the transaction's end, so that no server can register or write. The transaction's state is read afterwards.
    private func lockAlone(_ connection: PostgresConnection) throws {
        // A session's own settings would be another client's next behind a pooler.
        try connection.run("SET LOCAL statement_timeout = 0")
        try connection.run("SET LOCAL idle_in_transaction_session_timeout = '10min'")
        do {
            try connection.run("LOCK TABLE nodes, fences IN SHARE ROW EXCLUSIVE MODE NOWAIT")
            try connection.flush()
        } catch let failure as PostgresFailure where failure.state == "55P03" {
            throw self.isUsed(by: "a server, or by another copy")
        }
        let server = try StoreAccess(connection).first("SELECT name FROM nodes WHERE expires_at > clock_timestamp() LIMIT 1") {
            (row: inout RowReader) -> String in row.next()
        }
        if let server { throw self.isUsed(by: "the server with the name \(server)") }
    }
}
