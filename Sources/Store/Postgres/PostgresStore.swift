import Dispatch
import Rooms
import Support

/// A store in a PostgreSQL database.
final class PostgresStore: RoomStore {
    /// The oldest version of PostgreSQL that has all that the statements use.
    static let oldestServer = 15

    let notices: [String]
    private let location: PostgresLocation
    private let writer: PostgresConnection
    /// The writer and the membership are one caller's at a time.
    private let turn = DispatchSemaphore(value: 1)
    private let readers: PostgresReaders
    private let registration: Membership?
    let membership: Membership?

    /// Connects, and migrates the schema. `isNode`: takes the membership of a node, which no other process may have. Blocks.
    init(_ location: PostgresLocation, isNode: Bool) throws(StoreError) {
        self.location = location
        let options = PostgresConnection.Options(url: location.url, prepares: location.prepares, name: "earshot \(location.node)")
        self.writer = PostgresConnection(options)
        do {
            try self.writer.open()
            try Self.checkVersion(self.writer.serverVersion, location)
            try PostgresSchema.migrate(options)
            let membership = isNode ? try Membership(location, self.writer) : nil
            self.registration = membership
            self.membership = location.cluster == nil ? nil : membership
            self.readers = PostgresReaders(options, count: max(1, location.readers), node: self.membership?.number)
            self.notices = if let membership { try Self.giveUpUnknown(self.writer, membership) } else { [] }
        } catch {
            self.writer.close()
            throw Self.explain(error, location)
        }
    }

    /// Returns a notice for the log, if there is anything to say.
    private static func giveUpUnknown(_ writer: PostgresConnection, _ membership: Membership) throws -> [String] {
        try Self.retrying {
            do {
                try writer.begin()
                _ = try membership.fence(writer)
                let notice = try StoreAccess(writer).giveUpUnknownDeliveries()
                try writer.commit()
                return notice.map { [$0] } ?? []
            } catch {
                if writer.isOpen { writer.rollback() }
                throw error
            }
        }
    }

    func isDisplaced(by error: any Error) -> Bool {
        error is CommitForgotten || PostgresFailure.state(of: error) == PostgresFailure.fenced
    }

    func explain(_ error: any Error) -> StoreError { Self.explain(error, self.location) }

    /// `version`: as 150018 for 15.18.
    static func checkVersion(_ version: Int, _ location: PostgresLocation) throws(StoreError) {
        guard version < self.oldestServer * 10_000 else { return }
        throw StoreError(
            path: location.description, problem: "is PostgreSQL \(version / 10_000)", advice: "use PostgreSQL \(self.oldestServer) or newer"
        )
    }

    static func explain(_ error: any Error, _ location: PostgresLocation) -> StoreError {
        func problem(_ problem: String, _ advice: String) -> StoreError {
            StoreError(path: location.description, problem: problem, advice: advice)
        }
        switch error {
        case let error as StoreError: return error
        case let error as StoreAccess.TransactionLost: return self.explain(error.cause, location)
        case let error as CommitLost: return self.explain(error.cause, location)
        case let error as CommitForgotten: return problem(error.text, "stop one of the two servers")
        case let error as PostgresSchema.InUse:
            var conflict = problem(
                "is in use by the running server \(error.server), an older version",
                "stop that one first: this version brings the tables up to date")
            conflict.isConflict = true
            return conflict
        case let error as PostgresSchema.Unusable:
            return StoreSchema.objection(to: error.state, in: location.description, isDatabase: true) ?? problem("cannot be used", "")
        case let error as PostgresFailure: return problem(error.text, error.advice ?? "check database.url and PostgreSQL's log")
        default: return problem("cannot be used (\(error))", "check which version of earshot wrote it")
        }
    }

    // MARK: - Transactions

    func transaction<T>(_ body: (StoreAccess) throws -> T) throws -> T {
        self.turn.wait()
        defer { self.turn.signal() }
        do {
            try self.writer.begin()
            // A node that stands still holds up the others for a shorter time than they wait.
            if self.membership != nil { try self.writer.run("SET LOCAL idle_in_transaction_session_timeout = '3s'") }
            let batch = try self.registration?.fence(self.writer)
            let result = try body(StoreAccess(self.writer, node: self.membership?.number, memory: TransactionMemory()))
            do {
                try self.writer.commit()
            } catch let failure as PostgresFailure where failure.isOfCommit {
                guard let batch else { throw failure }
                let lost = CommitLost(batch: batch, cause: failure)
                guard let isCommitted = try? self.ask(lost) else { throw lost }
                guard isCommitted else { throw failure }
            }
            return result
        } catch {
            if self.writer.isOpen { self.writer.rollback() }
            // The next transaction is of the new incarnation.
            if self.membership != nil, PostgresFailure.state(of: error) == PostgresFailure.fenced {
                try? self.membership?.rejoin(self.writer)
            }
            throw error
        }
    }

    /// For so long a start tries again while other nodes keep the store busy, as the devices of a lost node do when all come at once.
    static let startPatience: Duration = .seconds(60)

    func insistently<T>(_ body: () throws -> T) throws -> T { try Self.retrying(body) }

    private static func retrying<T>(_ body: () throws -> T) throws -> T {
        let deadline = ContinuousClock.now + self.startPatience
        while true {
            do {
                return try body()
            } catch {
                // Nothing happened, and the next try may have its turn.
                guard PostgresFailure.state(of: error) == PostgresFailure.lockTimeout, ContinuousClock.now < deadline else { throw error }
            }
        }
    }

    // MARK: - Nodes

    func rejoin() throws {
        self.turn.wait()
        defer { self.turn.signal() }
        try self.membership?.rejoin(self.writer)
    }

    /// Waits for the database since the start, for the writer; tests count them.
    var roundTrips: Int {
        self.turn.wait()
        defer { self.turn.signal() }
        return self.writer.roundTrips
    }

    func wasCommitted(_ lost: CommitLost) throws -> Bool {
        self.turn.wait()
        defer { self.turn.signal() }
        return try self.ask(lost)
    }

    private func ask(_ lost: CommitLost) throws -> Bool { try self.registration?.wasCommitted(lost.batch, self.writer) ?? false }

    func read<T: Sendable>(_ body: @Sendable @escaping (StoreAccess) throws -> T) async throws(RegistryError) -> T {
        do {
            return try await self.readers.read(body)
        } catch {
            throw RegistryError(of: error)
        }
    }

    func readSeparately<T: Sendable>(_ body: @Sendable @escaping (StoreAccess) throws -> T) async throws(RegistryError) -> T {
        do {
            return try await self.readers.read(inTransaction: false, body)
        } catch {
            throw RegistryError(of: error)
        }
    }

    func readNow<T>(_ body: (StoreAccess) throws -> T) throws -> T { try self.readers.readNow(body) }

    func writerRead<T>(_ body: (StoreAccess) throws -> T) throws -> T {
        self.turn.wait()
        defer { self.turn.signal() }
        try self.writer.open()
        return try body(StoreAccess(self.writer, node: self.membership?.number))
    }

    func emptyLog() {}

    func close(emptiesLog: Bool) -> String? {
        self.turn.wait()
        defer { self.turn.signal() }
        self.registration?.leave(self.writer)
        self.writer.end()
        self.readers.close()
        return nil
    }
}
