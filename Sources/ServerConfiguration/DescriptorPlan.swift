/// Divides a process's file descriptors between connections and everything else. A value.
///
/// The rest serves the store, recordings, links to other servers, and the runtime. It is essential: the runtime's thread pool occasionally opens a
/// file of /proc, and ends the process when it cannot.
package struct DescriptorPlan: Sendable, Equatable {
    /// The process's limit (RLIMIT_NOFILE).
    package let limit: Int
    /// Descriptors that no connection may use.
    package let reserve: Int
    /// RTMP and RTMPS.
    package let connections: Int
    /// HTTP and HTTPS.
    package let httpConnections: Int
    /// RTMP and RTMPS, of one address; nil unless a setting says it.
    package let connectionsPerAddress: Int?

    /// A server with fewer connections than this is useless.
    private static let fewestConnections = 64
    private static let smallestReserve = 64
    /// For the store, listeners and sockets accepted only to be refused, plus three per event loop.
    private static let base = 48
    private static let perLoop = 3

    /// Throws when the limit is too low to serve at all.
    package init(limit: Int, limits: ServerConfig.Limits, loops: Int) throws(DescriptorShortage) {
        self.limit = limit
        self.reserve = max(Self.smallestReserve, limit / 8, Self.base + Self.perLoop * loops)
        let places = limit - self.reserve
        guard places >= Self.fewestConnections else {
            throw DescriptorShortage(limit: limit, least: self.reserve + Self.fewestConnections)
        }
        // RTMP and HTTP get half each, and may use what the other does not need.
        let half = places / 2
        if limits.connections <= half {
            self.connections = limits.connections
            self.httpConnections = min(limits.httpConnections, places - limits.connections)
        } else {
            self.httpConnections = min(limits.httpConnections, places - half)
            self.connections = min(limits.connections, places - self.httpConnections)
        }
        // A setting as large as all connections says that addresses have no limit.
        let isFitted = self.connections < limits.connections && limits.connectionsPerAddress ?? .max < limits.connections
        let share = isFitted ? ServerConfig.Limits.share(of: self.connections) : .max
        self.connectionsPerAddress = limits.connectionsPerAddress.map { min($0, share) }
    }

    /// Settings that exceed the available number: requested and granted.
    package func reductions(of limits: ServerConfig.Limits) -> [(setting: String, asked: Int, kept: Int)] {
        let perAddress = limits.connectionsPerAddress ?? 0
        return [
            ("limits.connections", limits.connections, self.connections),
            ("limits.connectionsPerAddress", perAddress, self.connectionsPerAddress ?? perAddress),
            ("limits.httpConnections", limits.httpConnections, self.httpConnections),
        ].filter { $0.1 > $0.2 }
    }

    /// Lowers the settings to this plan.
    package func apply(to limits: inout ServerConfig.Limits) {
        limits.connections = self.connections
        limits.connectionsPerAddress = self.connectionsPerAddress
        limits.httpConnections = self.httpConnections
    }
}

/// The process's limit of open files is too low to serve.
package struct DescriptorShortage: Error, Equatable, CustomStringConvertible {
    let limit: Int
    let least: Int

    package var description: String {
        "the limit of open files is \(self.limit); the server needs \(self.least) or more. Raise it (LimitNOFILE= in the systemd unit, "
            + "ulimit -n)"
    }
}
