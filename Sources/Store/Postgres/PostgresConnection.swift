internal import CLibPQ
import LibC
import Rooms

/// A connection to PostgreSQL. Blocks; used by one thread at a time.
///
/// Statements without results are sent with the next one that has some (pipeline mode; PostgreSQL, 34.5): a transaction costs a round trip
/// for each answer that it needs, not for each statement. Every wait for the server has a limit.
///
/// `@unchecked Sendable`: its owner passes it from thread to thread, never to two at once.
final class PostgresConnection: @unchecked Sendable {
    struct Options: Sendable, Equatable {
        /// `postgresql://user:password@host:port/database?options`, or libpq's `key=value` form (PostgreSQL, 34.1.1).
        var url: String
        /// Keeps parsed statements on the server. Off behind a pooler in transaction mode.
        var prepares = true
        /// Shown in pg_stat_activity.
        var name = "earshot"
        /// Longest wait for an answer.
        var patienceMs: Int64 = 10_000
    }

    private enum Sent {
        case preparation(name: String)
        case statement
        case synchronisation
    }

    private let options: Options
    private var connection: OpaquePointer?
    /// What the server has not answered yet, in order.
    private var sent: [Sent] = []
    /// Who reads the rows of a statement, by its position in `sent`.
    private var readers: [Int: (OpaquePointer) throws -> Void] = [:]
    private var prepared: [String: String] = [:]
    /// Statements whose preparation has been sent, but not answered.
    private var preparing: [String: String] = [:]
    private var nameCount = 0
    private var isOver = false
    private var refusal: (failure: PostgresFailure, until: ContinuousClock.Instant)?
    /// Waits for an answer since the start.
    private(set) var roundTrips = 0

    /// Most statements sent without reading an answer, so that neither end waits for the other with full buffers.
    private static let mostUnanswered = 64
    private static let mostPrepared = 500
    static let connectSeconds = 5
    private static let refusalTime = Duration.seconds(1)
    private static let longAttempt = Duration.milliseconds(500)

    init(_ options: Options) { self.options = options }

    deinit { if let connection { PQfinish(connection) } }

    var isOpen: Bool { self.connection != nil }

    /// Closes it for good.
    func end() {
        self.isOver = true
        self.close()
    }

    func close() {
        if let connection { PQfinish(connection) }
        self.connection = nil
        self.sent = []
        self.readers = [:]
        self.prepared = [:]
        self.preparing = [:]
    }

    // MARK: - Connecting

    /// The settings that every connection needs. `tcp_user_timeout` ends one whose server no longer acknowledges what it is sent.
    private static func parameters(_ options: Options) -> [(String, String)] {
        [
            ("dbname", options.url), ("connect_timeout", String(self.connectSeconds)), ("tcp_user_timeout", "5000"),
            ("keepalives_idle", "5"), ("keepalives_interval", "2"), ("keepalives_count", "3"), ("client_encoding", "UTF8"),
            ("fallback_application_name", options.name),
        ]
    }

    /// Connects unless connected. After an attempt that took long to fail, others within a second fail at once: callers must not wait for a
    /// timeout each. Throws ``PostgresFailure``.
    func open() throws {
        guard !self.isOver else { throw PostgresFailure(state: nil, "the store is closed") }
        if self.connection != nil, self.isAlive { return }
        if let refusal, ContinuousClock.now < refusal.until { throw refusal.failure }
        let began = ContinuousClock.now
        do {
            try self.connect()
            self.refusal = nil
        } catch {
            self.close()
            if let failure = error as? PostgresFailure, .now - began > Self.longAttempt {
                self.refusal = (failure, .now + Self.refusalTime)
            }
            throw error
        }
    }

    /// Whether the server has not ended the connection while nothing was going on.
    private var isAlive: Bool {
        guard let connection, self.sent.isEmpty else { return true }
        var descriptor = pollfd(fd: PQsocket(connection), events: Int16(POLLIN), revents: 0)
        // It may say something without ending, and says why before it ends.
        while poll(&descriptor, 1, 0) > 0 {
            let isRead = PQconsumeInput(connection) == 1
            // Takes in what has come.
            _ = PQisBusy(connection)
            guard isRead, PQstatus(connection) == CONNECTION_OK else {
                self.close()
                return false
            }
        }
        return true
    }

    private func connect() throws {
        _ = try PostgresAddress(self.options.url)
        let parameters = Self.parameters(self.options)
        // The list ends with a NULL.
        let connection = withCStrings(parameters.map(\.0) + [nil]) { keys in
            withCStrings(parameters.map(\.1) + [nil]) { values in PQconnectdbParams(keys, values, 1) }
        }
        guard let connection else { throw PostgresFailure(state: nil, "out of memory") }
        guard PQstatus(connection) == CONNECTION_OK else {
            defer { PQfinish(connection) }
            throw PostgresFailure(state: nil, String(cString: PQerrorMessage(connection)))
        }
        // What matters in notices comes as an error, too; libpq would print them to the server's standard error.
        PQsetNoticeProcessor(connection, { _, _ in }, nil)
        // A writer that waits for its own buffer could not read what the server waits to send.
        guard PQsetnonblocking(connection, 1) == 0, PQenterPipelineMode(connection) == 1 else {
            PQfinish(connection)
            throw PostgresFailure(state: nil, "the connection does not enter pipeline mode")
        }
        self.connection = connection
        // Behind a pooler settings of a session are another client's next; these are the same for all.
        try self.run("SET statement_timeout = '5s'")
        try self.run("SET lock_timeout = '2s'")
        try self.run("SET idle_in_transaction_session_timeout = '5s'")
        try self.flush()
    }

    /// The server's version, as 150018 for 15.18.
    var serverVersion: Int { self.connection.map { Int(PQserverVersion($0)) } ?? 0 }

    var isEncrypted: Bool { self.connection.map { PQsslInUse($0) == 1 } ?? false }

    // MARK: - Transactions

    func begin() throws {
        try self.open()
        try self.run("BEGIN")
    }

    /// Throws a failure with ``PostgresFailure/isOfCommit`` when the connection failed and nobody knows.
    func commit() throws {
        // What failed before the COMMIT was sent is no doubt about it.
        try self.flush()
        do {
            try self.run("COMMIT")
            var word = ""
            try self.receive { word = String(cString: PQcmdStatus($0)) }
            // After an error that nobody has undone, COMMIT is a ROLLBACK.
            guard word == "COMMIT" else { throw PostgresFailure(state: "25P02", "the transaction had failed, and was undone") }
        } catch var failure as PostgresFailure {
            failure.isOfCommit = failure.endsConnection
            throw failure
        }
    }

    func rollback() {
        do {
            try self.run("ROLLBACK")
            try self.flush()
        } catch {
            self.close()
        }
    }

    // MARK: - Sending

    private func send(_ sql: String, _ arguments: StoreArguments) throws {
        guard let connection else { throw PostgresFailure(state: nil, "not connected") }
        if self.sent.count >= Self.mostUnanswered { try self.flush() }
        assert(StoreDialect.isNumberedByFirstUse(sql), sql)
        let texts = try arguments.values.map(Self.text)
        let count = Int32(texts.count)
        let isSent = try withCStrings(texts) { values -> Int32 in
            guard self.options.prepares else { return PQsendQueryParams(connection, sql, count, nil, values, nil, nil, 0) }
            let name = try self.name(of: sql, connection)
            return PQsendQueryPrepared(connection, name, count, values, nil, nil, 0)
        }
        guard isSent == 1 else { throw self.broken() }
        self.sent.append(.statement)
    }

    /// The statement's name on the server; sends its preparation the first time.
    private func name(of sql: String, _ connection: OpaquePointer) throws -> String {
        if let name = self.prepared[sql] ?? self.preparing[sql] { return name }
        // Statements without a name are parsed each time: lists with rare filters are many.
        let isKept = self.prepared.count + self.preparing.count < Self.mostPrepared
        let name = isKept ? "s\(self.nameCount)" : ""
        guard PQsendPrepare(connection, name, sql, 0, nil) == 1 else { throw self.broken() }
        self.sent.append(.preparation(name: name))
        if isKept {
            self.nameCount += 1
            self.preparing[sql] = name
        }
        return name
    }

    private static func text(_ value: StoreValue) throws -> String? {
        switch value {
        case .null: return nil
        case .integer(let number): return String(number)
        case .real(let number): return String(number)
        case .text(let text):
            // libpq takes texts that end with NUL; PostgreSQL stores none.
            guard !text.utf8.contains(0) else { throw PostgresFailure(state: "22021", "a text holds the character U+0000") }
            return text
        }
    }

    // MARK: - Receiving

    /// Sends what is queued, and reads all answers. Calls `body` with the rows of the last statement, and who else waits for rows. Throws the first
    /// error.
    private func receive(_ body: (OpaquePointer) throws -> Void = { _ in }) throws {
        guard let connection else { throw PostgresFailure(state: nil, "not connected") }
        guard !self.sent.isEmpty else { return }
        guard PQpipelineSync(connection) == 1 else { throw self.broken() }
        self.sent.append(.synchronisation)
        self.roundTrips += 1
        let deadline = ContinuousClock.now + .milliseconds(self.options.patienceMs)
        var first: (any Error)?
        let last = self.sent.count - 2
        for (index, sent) in self.sent.enumerated() {
            let result = try self.result(connection, deadline)
            defer { PQclear(result) }
            switch PQresultStatus(result) {
            case PGRES_PIPELINE_SYNC, PGRES_PIPELINE_ABORTED: break
            case PGRES_COMMAND_OK, PGRES_TUPLES_OK:
                if case .preparation(let name) = sent { self.keep(name) }
                if first == nil, let result {
                    do {
                        try self.readers[index]?(result)
                        if index == last { try body(result) }
                    } catch {
                        first = error
                    }
                }
            default: first = first ?? Self.failure(result, connection)
            }
            // Each statement's results end with a null; the synchronisation has none.
            if case .synchronisation = sent { continue }
            if let more = try self.result(connection, deadline) {
                PQclear(more)
                // As when the server ends the connection: the first error says why.
                let unexpected = self.broken("more results than expected")
                throw first ?? unexpected
            }
        }
        self.sent = []
        self.readers = [:]
        // What the server did not accept is prepared anew.
        self.preparing = [:]
        guard let first else { return }
        if let failure = first as? PostgresFailure, failure.endsConnection { self.close() }
        throw first
    }

    private func keep(_ name: String) {
        guard let sql = self.preparing.first(where: { $0.value == name })?.key else { return }
        self.preparing[sql] = nil
        self.prepared[sql] = name
    }

    /// The next result. Throws when the connection fails, or the server does not answer in time.
    private func result(_ connection: OpaquePointer, _ deadline: ContinuousClock.Instant) throws -> OpaquePointer? {
        while true {
            let unsent = PQflush(connection)
            guard unsent >= 0 else { throw self.broken() }
            if unsent == 0, PQisBusy(connection) == 0 { return PQgetResult(connection) }
            let left = (deadline - .now) / .milliseconds(1)
            guard left > 0 else {
                throw self.broken("no answer for \(self.options.patienceMs / 1_000) s; the connection is given up")
            }
            var descriptor = pollfd(fd: PQsocket(connection), events: Int16(POLLIN) | (unsent > 0 ? Int16(POLLOUT) : 0), revents: 0)
            let ready = poll(&descriptor, 1, Int32(left.rounded(.up)))
            guard ready >= 0 || errno == EINTR else { throw self.broken(errorText(errno)) }
            if ready > 0, PQconsumeInput(connection) == 0 { throw self.broken() }
        }
    }

    private static func failure(_ result: OpaquePointer?, _ connection: OpaquePointer) -> PostgresFailure {
        func field(_ code: UInt8) -> String? { PQresultErrorField(result, Int32(code)).map { String(cString: $0) } }
        let message = field(UInt8(ascii: "M")) ?? String(cString: PQerrorMessage(connection))
        return PostgresFailure(state: field(UInt8(ascii: "C")), message)
    }

    /// Closes the connection, which is in no known state any more.
    private func broken(_ why: String? = nil) -> PostgresFailure {
        let message = why ?? self.connection.map { String(cString: PQerrorMessage($0)) } ?? "not connected"
        self.close()
        return PostgresFailure(state: nil, message.isEmpty ? "the connection was lost" : message)
    }
}

extension PostgresConnection: StoreConnection {
    var dialect: StoreDialect { .postgres }
    var isInTransaction: Bool { self.connection.map { PQtransactionStatus($0) != PQTRANS_IDLE } ?? false }
    func isFatal(_ error: any Error) -> Bool { (error as? PostgresFailure)?.losesTransaction ?? false }

    func run(_ sql: String, _ arguments: StoreArguments = []) throws { try self.send(sql, arguments) }

    func flush() throws { try self.receive() }

    func change(_ sql: String, _ arguments: StoreArguments) throws -> Int {
        try self.send(sql, arguments)
        var count = 0
        try self.receive { count = Int(String(cString: PQcmdTuples($0))) ?? 0 }
        return count
    }

    var hasUnanswered: Bool { !self.sent.isEmpty }

    func query(_ sql: String, _ arguments: StoreArguments, _ body: (any StoreRow) throws -> Bool) throws {
        try self.send(sql, arguments)
        try self.receive { try Self.read($0, body) }
    }

    func expect(_ sql: String, _ arguments: StoreArguments, _ body: @escaping (any StoreRow) throws -> Bool) throws {
        try self.send(sql, arguments)
        self.readers[self.sent.count - 1] = { try Self.read($0, body) }
    }

    private static func read(_ result: OpaquePointer, _ body: (any StoreRow) throws -> Bool) throws {
        for row in 0..<PQntuples(result) {
            guard try body(PostgresRow(result: result, row: row)) else { return }
        }
    }

    /// PostgreSQL takes several statements in a text without arguments only outside of pipelines.
    func runScript(_ sql: String) throws {
        for statement in sql.split(separator: ";") where statement.contains(where: { !$0.isWhitespace }) {
            try self.send(String(statement), [])
        }
    }

    /// Runs a script of definitions: statements that end with a semicolon at a line's end, whose functions, between `$$`, have such lines too.
    func runDefinitions(_ sql: String) throws {
        var statement = ""
        for line in sql.split(separator: "\n") {
            statement += line + "\n"
            guard line.hasSuffix(";"), statement.split(separator: "$$", omittingEmptySubsequences: false).count % 2 == 1 else { continue }
            try self.send(statement, [])
            statement = ""
        }
        if !statement.isEmpty { try self.send(statement, []) }
        try self.flush()
    }
}

/// A row of a result, in text form.
private struct PostgresRow: StoreRow {
    let result: OpaquePointer
    let row: Int32

    func text(at column: Int) -> String? {
        guard PQgetisnull(self.result, self.row, Int32(column)) == 0 else { return nil }
        return String(cString: PQgetvalue(self.result, self.row, Int32(column)))
    }

    func integer(at column: Int) -> Int64? { self.text(at: column).flatMap { Int64($0) } }
    func real(at column: Int) -> Double? { self.text(at: column).flatMap { Double($0) } }
}

/// Calls `body` with an array of C strings; nil is NULL.
private func withCStrings<R>(_ texts: [String?], _ body: (UnsafePointer<UnsafePointer<CChar>?>?) throws -> R) rethrows -> R {
    let copies = texts.map { $0.flatMap { strdup($0) } }
    defer { for copy in copies { free(copy) } }
    return try copies.map { UnsafePointer<CChar>($0) }.withUnsafeBufferPointer { try body($0.baseAddress) }
}
