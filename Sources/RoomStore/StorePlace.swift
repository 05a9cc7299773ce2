/// Where the registry is kept.
package enum StorePlace: Sendable, Equatable {
    /// SQLite, in a folder.
    case folder(String)
    case postgres(PostgresPlace)

    /// The database at `url`, or the folder if there is none.
    package init(folder: String, url: String?, readers: Int, prepares: Bool, node: String, version: String, cluster: String? = nil) {
        self =
            url.map {
                .postgres(
                    PostgresPlace(
                        url: $0, readers: readers, prepares: prepares, node: node, version: version, folder: folder, cluster: cluster))
            } ?? .folder(folder)
    }
}

/// A database in PostgreSQL, and who this process is there.
package struct PostgresPlace: Sendable, Equatable, CustomStringConvertible {
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

    package init(
        url: String, readers: Int = 4, prepares: Bool = true, node: String = "earshot", version: String = "", folder: String? = nil,
        cluster: String? = nil
    ) {
        self.url = url
        self.readers = readers
        self.prepares = prepares
        self.node = node
        self.version = version
        self.folder = folder
        self.cluster = cluster
    }

    /// The address without user, password and options: `postgresql://db.example.com:5432/earshot`.
    package var description: String {
        guard let address = try? PostgresAddress(self.url) else { return "database.url" }
        return address.shown
    }
}
