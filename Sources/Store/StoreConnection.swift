/// A connection to the database of rooms, as the statements see it. Used by one thread at a time.
///
/// One text serves both databases: values are `$1` and so on, numbered by first use, conflict targets and subqueries are named, new rows are read
/// back with RETURNING, and the column "user" is quoted. What they cannot share is ``StoreDialect``.
package protocol StoreConnection {
    var dialect: StoreDialect { get }
    /// Runs one statement, which may be kept for the next time. Its error may come with the next call that waits for an answer.
    func run(_ sql: String, _ arguments: StoreArguments) throws
    /// Runs one statement and returns the number of rows changed.
    func change(_ sql: String, _ arguments: StoreArguments) throws -> Int
    /// Runs one statement and calls `body` with each row until it returns false.
    func query(_ sql: String, _ arguments: StoreArguments, _ body: (any StoreRow) throws -> Bool) throws
    /// The same, but `body` may be called as late as with the next call that waits for an answer: both cost one wait.
    func expect(_ sql: String, _ arguments: StoreArguments, _ body: @escaping (any StoreRow) throws -> Bool) throws
    /// Runs several statements without arguments.
    func runScript(_ sql: String) throws
    /// Whether statements have been sent whose outcome is not known yet.
    var hasUnanswered: Bool { get }
    /// Waits until all statements have run, and throws the error of the first that failed.
    func flush() throws
    /// Whether a transaction is open; some errors end it.
    var isInTransaction: Bool { get }
    /// Whether nothing of a transaction can be kept after this error.
    func isFatal(_ error: any Error) -> Bool
}

/// A row of a result. Columns count from 0; nil is NULL.
package protocol StoreRow {
    func integer(at column: Int) -> Int64?
    func real(at column: Int) -> Double?
    func text(at column: Int) -> String?
}

/// A value that a statement takes.
package enum StoreValue: Sendable, Equatable {
    case null
    case integer(Int64)
    case real(Double)
    case text(String)
}

/// A type that statements accept and rows return.
package protocol StoreConvertible: Sendable {
    var storeValue: StoreValue { get }
    /// Nil for NULL.
    static func read(_ row: any StoreRow, at column: Int) -> Self?
}

extension Int64: StoreConvertible {
    package var storeValue: StoreValue { .integer(self) }
    package static func read(_ row: any StoreRow, at column: Int) -> Int64? { row.integer(at: column) }
}

extension Int: StoreConvertible {
    package var storeValue: StoreValue { .integer(Int64(self)) }
    package static func read(_ row: any StoreRow, at column: Int) -> Int? { row.integer(at: column).map { Int(clamping: $0) } }
}

extension Bool: StoreConvertible {
    package var storeValue: StoreValue { .integer(self ? 1 : 0) }
    package static func read(_ row: any StoreRow, at column: Int) -> Bool? { row.integer(at: column).map { $0 != 0 } }
}

extension Double: StoreConvertible {
    package var storeValue: StoreValue { .real(self) }
    package static func read(_ row: any StoreRow, at column: Int) -> Double? { row.real(at: column) }
}

extension String: StoreConvertible {
    package var storeValue: StoreValue { .text(self) }
    package static func read(_ row: any StoreRow, at column: Int) -> String? { row.text(at: column) }
}

/// The values for a statement's placeholders, in order.
package struct StoreArguments: ExpressibleByArrayLiteral {
    package let values: [StoreValue]

    package init(values: [StoreValue]) { self.values = values }

    package init(_ values: [(any StoreConvertible)?]) { self.values = values.map { $0?.storeValue ?? .null } }

    package init(arrayLiteral elements: (any StoreConvertible)?...) { self.init(elements) }
}

/// The statements of one connection, for use inside a transaction or a read.
package struct StoreAccess {
    package let connection: any StoreConnection
    /// This node's number where several share the database; nil otherwise.
    package let node: Int64?
    /// Nil outside of a transaction that writes.
    package let memory: TransactionMemory?

    package init(_ connection: any StoreConnection, node: Int64? = nil, memory: TransactionMemory? = nil) {
        self.connection = connection
        self.node = node
        self.memory = memory
    }

    /// An error after which nothing of the transaction can be kept.
    package struct TransactionLost: Error { package let cause: any Error }

    /// Runs one operation of a batch and undoes its writes if it throws. Throws ``TransactionLost`` if nothing of the batch can be kept.
    package func savepoint<T>(_ body: () throws -> T) throws -> T {
        do {
            try self.run("SAVEPOINT operation")
        } catch {
            throw TransactionLost(cause: error)
        }
        do {
            let result = try body()
            // An error of the last statements belongs to this operation. The release itself has none.
            let mustWait = self.connection.hasUnanswered
            try self.run("RELEASE operation")
            if mustWait { try self.connection.flush() }
            return result
        } catch let first {
            self.memory?.forget()
            // Without a connection nothing is left to undo, and nobody to ask.
            guard self.connection.isInTransaction else { throw TransactionLost(cause: first) }
            do {
                // What became of the statements before it is known only now.
                try self.connection.flush()
            } catch  where self.connection.isFatal(error) {
                throw TransactionLost(cause: error)
            } catch {
                // Undone below.
            }
            guard self.connection.isInTransaction, !self.connection.isFatal(first) else { throw TransactionLost(cause: first) }
            do {
                try self.run("ROLLBACK TO operation")
                try self.run("RELEASE operation")
                try self.connection.flush()
            } catch {
                throw TransactionLost(cause: error)
            }
            throw first
        }
    }

    package func run(_ sql: String, _ arguments: StoreArguments = []) throws { try self.connection.run(sql, arguments) }

    /// Runs several statements without arguments.
    package func runScript(_ sql: String) throws { try self.connection.runScript(sql) }

    /// Runs a statement and returns the number of rows changed.
    package func change(_ sql: String, _ arguments: StoreArguments = []) throws -> Int {
        try self.connection.change(sql, arguments)
    }

    /// Runs an INSERT … RETURNING and returns the new row's number.
    package func insert(_ sql: String, _ arguments: StoreArguments = []) throws -> Int64 {
        var number: Int64?
        // Read to its end, which ends the statement.
        try self.connection.query(sql, arguments) { row in
            number = number ?? row.integer(at: 0)
            return true
        }
        guard let number else { throw NoNewRow() }
        return number
    }

    package struct NoNewRow: Error, CustomStringConvertible {
        package init() {}
        package var description: String { "the store returned no number for a new row" }
    }

    /// The first row, once the next answer has come: both cost one wait.
    package func expectFirst<T>(
        _ sql: String, _ arguments: StoreArguments = [], _ body: @escaping (inout RowReader) throws -> T
    ) throws -> Expected<T> {
        let expected = Expected<T>()
        try self.connection.expect(sql, arguments) { row in
            var reader = RowReader(row: row)
            expected.value = try body(&reader)
            return false
        }
        return expected
    }

    /// What ``expectFirst`` has read; nil before it has, and if there was no row.
    package final class Expected<T> {
        package fileprivate(set) var value: T?
    }

    /// The first row, read by `body`.
    package func first<T>(_ sql: String, _ arguments: StoreArguments = [], _ body: (inout RowReader) throws -> T) throws -> T? {
        var value: T?
        try self.connection.query(sql, arguments) { row in
            var reader = RowReader(row: row)
            value = try body(&reader)
            return false
        }
        return value
    }

    package func all<T>(_ sql: String, _ arguments: StoreArguments = [], _ body: (inout RowReader) throws -> T) throws -> [T] {
        var list: [T] = []
        try self.connection.query(sql, arguments) { row in
            var reader = RowReader(row: row)
            list.append(try body(&reader))
            return true
        }
        return list
    }

    /// The first column of the first row.
    package func number(_ sql: String, _ arguments: StoreArguments = []) throws -> Int64? {
        try self.first(sql, arguments) { (row: inout RowReader) -> Int64? in row.optional() } ?? nil
    }
}

/// Reads a row's columns from left to right. The tables are STRICT: a column holds its type, or NULL only where the schema allows it.
package struct RowReader {
    private let row: any StoreRow
    private var column = 0

    package init(row: any StoreRow) { self.row = row }

    /// The next column, which the schema defines as NOT NULL.
    package mutating func next<T: StoreConvertible>() -> T {
        guard let value: T = self.optional() else { preconditionFailure("column \(self.column - 1) is NULL, against the schema") }
        return value
    }

    package mutating func optional<T: StoreConvertible>() -> T? {
        defer { self.column += 1 }
        return T.read(self.row, at: self.column)
    }

    /// Reads an enumeration's value. Throws ``UnknownWord`` if another version wrote one unknown here.
    package mutating func word<T: RawRepresentable>(_ type: T.Type = T.self) throws -> T where T.RawValue == String {
        let text: String = self.next()
        guard let value = T(rawValue: text) else { throw UnknownWord(word: text) }
        return value
    }

    package struct UnknownWord: Error, CustomStringConvertible {
        package let word: String
        package var description: String { "the store holds \"\(self.word)\", which this version does not know" }
    }
}
