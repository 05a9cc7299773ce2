/// An error of PostgreSQL or of the connection to it.
struct PostgresFailure: DatabaseFailure, Equatable {
    /// The five characters of an error of the server's (PostgreSQL, appendix A); nil if the connection failed.
    let state: String?
    /// One line.
    let message: String
    /// Whether the transaction may have been committed all the same: the connection failed between its COMMIT and the answer.
    var isOfCommit = false

    init(state: String?, _ message: String) {
        self.state = state
        self.message = message.split { $0.isNewline || $0 == "\t" }.joined(separator: " ")
    }

    /// An address that cannot be used, which is not shown.
    static let unreadableAddress = "the address cannot be read"

    var text: String { self.state.map { "PostgreSQL \($0): \(self.message)" } ?? "PostgreSQL: \(self.message)" }

    /// Raised by the server's function that begins a node's transactions, once another process has the node's place.
    static let fenced = FirstSchemaOfPostgres.fenced

    /// A lock was waited for in vain.
    static let lockTimeout = "55P03"

    /// The state of the failure that ended a transaction.
    static func state(of error: any Error) -> String? {
        let cause = (error as? StoreAccess.TransactionLost)?.cause ?? error
        return (cause as? PostgresFailure)?.state
    }

    /// Whether the connection is of no more use. Class 57P: the server ends it, or does not accept it yet. 25006: it has become a standby, and
    /// another host may be the primary.
    var endsConnection: Bool { self.state.map { $0.hasPrefix("08") || $0.hasPrefix("57P") || $0 == "25006" } ?? true }

    /// Whether nothing of a transaction can be kept: connection, resources, the operator's intervention, deadlocks, timeouts, read-only
    /// standbys.
    var losesTransaction: Bool {
        guard let state else { return true }
        return ["08", "25", "40", "53", "57", "58", "XX", Self.fenced.prefix(2)].contains(state.prefix(2)) || state == Self.lockTimeout
    }
}
