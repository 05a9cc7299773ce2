/// Where the registry is kept.
package enum StorePlace: Sendable, Equatable {
    /// SQLite, in a folder.
    case folder(String)
    case postgres(PostgresPlace)
}

/// A database in PostgreSQL, and who this process is there.
package struct PostgresPlace: Sendable, Equatable, CustomStringConvertible {
    /// `postgresql://user:password@host:port/database?options`, or libpq's `key=value` form (PostgreSQL, 34.1.1).
    package var url: String
    /// Connections that read.
    package var readers: Int
    /// Keeps parsed statements on the server. Off behind a pooler in transaction mode.
    package var prepares: Bool
    /// The node's name, which no other running process has.
    package var node: String
    /// This program's version, for the list of nodes.
    package var version: String

    package init(url: String, readers: Int = 4, prepares: Bool = true, node: String = "earshot", version: String = "") {
        self.url = url
        self.readers = readers
        self.prepares = prepares
        self.node = node
        self.version = version
    }

    /// The address without user, password and options.
    package var description: String {
        guard let scheme = self.url.firstRange(of: "://") else {
            let shown = self.url.split(separator: " ").filter { part in ["host=", "port=", "dbname="].contains { part.hasPrefix($0) } }
            return "PostgreSQL (\(shown.joined(separator: " ")))"
        }
        let rest = self.url[scheme.upperBound...].prefix { $0 != "?" }
        let address = rest.lastIndex(of: "@").map { rest[rest.index(after: $0)...] } ?? rest
        return "postgresql://\(address)"
    }
}
