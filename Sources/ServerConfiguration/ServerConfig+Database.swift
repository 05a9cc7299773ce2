import LibC

extension ServerConfig {
    /// The database of rooms, tokens and events, in place of the one in the data directory.
    package struct Database: Sendable, Equatable {
        /// A URL or libpq's `key=value` form, which may hold a password. Nil: SQLite in the data directory.
        package var url: String?
        /// Connections that read.
        package var readers = 4
        /// Whether the database keeps parsed statements.
        package var isPrepared = true
    }

    /// This server among those of its database.
    package struct Cluster: Sendable, Equatable {
        /// Nil: the host's name.
        package var name: String?
        /// Where the other nodes reach this one's API: `http://host:port` or `https://host:port`. Nil: where http.listen says, unless on all addresses.
        package var address: String?
        /// The secret that all servers of the cluster have; nil: this server is alone.
        package var key: String?
        /// The cluster's former key, for opening what it made.
        package var previousKey: String?

        /// The name in effect.
        package var nodeName: String { self.name ?? Self.hostName }

        /// The host's name with what a name may not hold replaced; "earshot" for a host without one.
        private static var hostName: String {
            var bytes = [CChar](repeating: 0, count: 256)
            guard gethostname(&bytes, bytes.count - 1) == 0 else { return "earshot" }
            let name = bytes.prefix { $0 != 0 }.map { NodeName.isAllowed(UInt8(bitPattern: $0)) ? UInt8(bitPattern: $0) : 0x2D }
            return name.isEmpty ? "earshot" : String(decoding: name.prefix(NodeName.longest), as: UTF8.self)
        }
    }
}

/// Names of servers in a database.
package enum NodeName {
    package static let longest = 64

    static func isAllowed(_ byte: UInt8) -> Bool {
        (0x30...0x39).contains(byte) || (0x61...0x7A).contains(byte | 0x20) || [0x5F, 0x2E, 0x2D].contains(byte)
    }
}
