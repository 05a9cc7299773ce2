internal import CLibPQ

/// The address of a database, as libpq reads it. A value.
///
/// libpq quotes what it does not understand, which may be part of a password: an address that it misreads is refused here, without a quote.
struct PostgresAddress {
    private let host: String
    private let port: String
    private let database: String

    /// Throws ``PostgresFailure``.
    init(_ url: String) throws {
        guard let options = PQconninfoParse(url, nil) else { throw Self.unreadable }
        defer { PQconninfoFree(options) }
        var values: [String: String] = [:]
        var option = options
        // The list ends with an option without a name.
        while let keyword = option.pointee.keyword {
            if let value = option.pointee.val { values[String(cString: keyword)] = String(cString: value) }
            option += 1
        }
        self.host = values["host"] ?? values["hostaddr"] ?? ""
        self.port = values["port"] ?? ""
        self.database = values["dbname"] ?? ""
        // A user or password with an unescaped @, / or : moves its rest into host, port or name.
        guard !self.host.contains("@"), self.port.allSatisfy({ ("0"..."9").contains($0) || $0 == "," }),
            !["@", "=", ":"].contains(where: self.database.contains)
        else { throw Self.unreadable }
    }

    private static var unreadable: PostgresFailure { PostgresFailure(state: nil, PostgresFailure.unreadableAddress) }

    /// Several hosts have their ports beside them.
    var shown: String {
        let ports = self.port.split(separator: ",", omittingEmptySubsequences: false)
        let hosts = self.host.split(separator: ",", omittingEmptySubsequences: false).enumerated().map { index, host -> String in
            let port = ports.count == 1 ? ports[0] : index < ports.count ? ports[index] : ""
            // The folder of a socket.
            let name = host.contains("/") ? String(host).replacing("/", with: "%2F") : host.contains(":") ? "[\(host)]" : String(host)
            return port.isEmpty ? name : "\(name):\(port)"
        }
        return "postgresql://\(hosts.joined(separator: ","))/\(self.database)"
    }
}
