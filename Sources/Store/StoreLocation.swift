/// Where the registry is kept.
package enum StoreLocation: Sendable, Equatable {
    /// SQLite, in a folder.
    case folder(String)
    case postgres(PostgresLocation)

    /// The database at `url`, or the folder if there is none.
    package init(
        folder: String, url: String?, readers: Int, prepares: Bool, node: String, version: String, cluster: String? = nil,
        otherKey: String? = nil
    ) {
        self =
            url.map {
                .postgres(
                    PostgresLocation(
                        url: $0, readers: readers, prepares: prepares, node: node, version: version, folder: folder, cluster: cluster,
                        otherKey: otherKey))
            } ?? .folder(folder)
    }
}

/// A database in PostgreSQL, and who this process is there.
package struct PostgresLocation: Sendable, Equatable, CustomStringConvertible {
    /// `postgresql://user:password@host:port/database?options`, or libpq's `key=value` form (PostgreSQL, 34.1.1).
    package var url: String
    /// Connections that read.
    package var readers: Int
    /// Keeps parsed statements on the server. Off behind a pooler in transaction mode.
    package var prepares: Bool
    /// The server's name in messages and in pg_stat_activity. A restart under the same name takes the same number.
    package var node: String
    /// This program's version, for the list of nodes.
    package var version: String
    /// The server's data directory, which no other running server may have: keys, statistics and recordings are there. Nil: none.
    package var folder: String?
    /// The fingerprint of the cluster's key: servers with the same one share the database. Nil: this server has it to itself.
    package var cluster: String?
    /// The fingerprint of another key that this server knows, while the cluster's key changes.
    package var otherKey: String?

    package init(
        url: String, readers: Int = 4, prepares: Bool = true, node: String = "earshot", version: String = "", folder: String? = nil,
        cluster: String? = nil, otherKey: String? = nil
    ) {
        self.url = url
        self.readers = readers
        self.prepares = prepares
        self.node = node
        self.version = version
        self.folder = folder
        self.cluster = cluster
        self.otherKey = otherKey
    }

    /// The fingerprints of this server's keys, the cluster's first, as the list of nodes has them.
    var keys: String { [self.cluster, self.otherKey].compactMap(\.self).joined(separator: " ") }

    /// Whether this server knows the key of one with these fingerprints.
    func knows(_ keys: String) -> Bool { Self.knows(self.keys, keys) }

    /// Whether both know each other's: what one signs or seals the other accepts.
    func isOneCluster(with keys: String) -> Bool { Self.knows(self.keys, keys) && Self.knows(keys, self.keys) }

    private static func knows(_ own: String, _ other: String) -> Bool {
        other.split(separator: " ").first.map(own.split(separator: " ").contains) ?? false
    }

    /// The address without user, password and options: `postgresql://db.example.com:5432/earshot`.
    package var description: String {
        guard let address = try? PostgresAddress(self.url) else { return "database.url" }
        return address.shown
    }
}
