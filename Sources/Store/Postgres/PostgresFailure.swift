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

    /// Raised by the server's function that begins a node's transactions, once another process has the node's membership.
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

    /// What to do about an error, by its class; nil for those that say nothing of the cause. Failures to connect have no state, only libpq's words.
    var advice: String? {
        func says(_ words: String...) -> Bool { words.contains { self.message.contains($0) } }
        switch self.state?.prefix(2) {
        case "42" where self.state == "42P05", "26":
            return "behind a pooler in transaction mode, set database.prepared: false"
        case "42" where self.state == "42501", "28":
            return "give the role the rights to the database: it should own it (CREATE DATABASE … OWNER …)"
        case "25" where self.state == "25006":
            return "name the primary, not a standby: add target_session_attrs=read-write to database.url"
        case "53" where self.state == "53300": return Self.tooMany
        case "53": return "make room: its disk is full, or its memory"
        case "55" where self.state == "55P03", "57" where self.state == "57014":
            return "look what keeps the database busy (pg_stat_activity, pg_locks); `earshot store copy` lets no server begin"
        case "57": return "wait until it accepts connections, and look into its log"
        case nil where self.message == Self.unreadableAddress:
            return "check database.url; in a URL, write special characters of user and password percent-encoded, as %40 for @"
        case nil where says("too many", "remaining connection slots"): return Self.tooMany
        case nil where says("no answer for"): return "look whether PostgreSQL is stuck, or the network to it"
        case nil where says("password", "authentication", "no pg_hba.conf entry", "role"):
            return "check user and password in database.url, and pg_hba.conf of the server"
        case nil where says("certificate", "SSL", "TLS"):
            return "check sslmode and sslrootcert in database.url, and the server's certificate"
        case nil where says("does not exist"): return "create it: CREATE DATABASE … OWNER …"
        case nil where says("could not translate host name", "refused", "timeout", "No route", "unreachable", "No such file"):
            return "check host and port in database.url, and that PostgreSQL runs there"
        default: return nil
        }
    }

    private static let tooMany = "raise max_connections of the server, or lower database.readers"
}
