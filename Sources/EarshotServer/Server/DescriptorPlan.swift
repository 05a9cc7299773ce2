/// How a process's file descriptors are shared out: so many for connections, and the rest for whatever else is opened. A value.
///
/// The rest is for the store, recordings, links to other servers, and the runtime. That is not a matter of comfort: the runtime's thread
/// pool opens a file of /proc now and then, and ends the process when it cannot.
package struct DescriptorPlan: Sendable, Equatable {
    /// The process's limit (RLIMIT_NOFILE).
    package let limit: Int
    /// Of these, for no connection.
    package let reserve: Int
    /// RTMP and RTMPS.
    package let connections: Int
    /// HTTP and HTTPS.
    package let httpConnections: Int

    /// Fewer than that serve nobody.
    private static let fewestConnections = 64
    private static let smallestReserve = 64
    /// Store, listeners, what is accepted only to be refused; and three of each event loop.
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
        // Each gets its half; what one does not want goes to the other.
        let half = places / 2
        if limits.connections <= half {
            self.connections = limits.connections
            self.httpConnections = min(limits.httpConnections, places - limits.connections)
        } else {
            self.httpConnections = min(limits.httpConnections, places - half)
            self.connections = min(limits.connections, places - self.httpConnections)
        }
    }

    /// Settings that ask for more than there is: what they ask for, and what they get.
    package func reductions(of limits: ServerConfig.Limits) -> [(setting: String, asked: Int, kept: Int)] {
        [
            ("limits.connections", limits.connections, self.connections),
            ("limits.httpConnections", limits.httpConnections, self.httpConnections),
        ].filter { $0.1 > $0.2 }
    }

    /// The settings as they can be kept.
    package func apply(to limits: inout ServerConfig.Limits) {
        limits.connections = self.connections
        limits.httpConnections = self.httpConnections
    }
}

/// A process that may open too few files to serve.
package struct DescriptorShortage: Error, Equatable, CustomStringConvertible {
    let limit: Int
    let least: Int

    package var description: String {
        "the limit of open files is \(self.limit); the server needs \(self.least) or more. Raise it (LimitNOFILE= in the systemd unit, "
            + "ulimit -n)"
    }
}
