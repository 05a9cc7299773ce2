import Support

extension ConfigSetting {
    /// The settings of a PostgreSQL database, and of this server there.
    static let database: [ConfigSetting] = [
        .make(
            "database.url", \.database.url, .optional(.database),
            "PostgreSQL database for rooms, tokens, events and webhooks, of one server or of a cluster. Not set: a SQLite file in data.directory.",
            isSecret: true),
        .make(
            "database.readers", \.database.readers, .count(1...64),
            "Connections to that database that read; one more writes, and one keeps the server's place."),
        .make(
            "database.prepared", \.database.isPrepared, .onOff,
            "Whether that database keeps parsed statements. Turn it off behind a pooler in transaction mode."),

        .make(
            "cluster.name", \.cluster.name, .optional(.nodeName),
            "This server's name in that database. Not set: the host's name."),
        .make(
            "cluster.address", \.cluster.address, .optional(.nodeAddress),
            "Where the cluster's other servers reach this one's API. Not set: the address of http.listen, unless that is 0.0.0.0 or [::]."),
        .make(
            "cluster.key", \.cluster.key, .optional(.clusterKey),
            "The secret of all servers that share database.url as a cluster; the keys of keys.json, console.key and links.key come from it.",
            isSecret: true),
        .make(
            "cluster.previousKey", \.cluster.previousKey, .optional(.clusterKey),
            "A second such secret, for changing cluster.key: what it signed or sealed is accepted, and nothing new is made with it.",
            isSecret: true),
    ]
}

extension ConfigValueKind<String> {
    /// The address of a PostgreSQL database (PostgreSQL, 34.1.1). No message contains the value, which may hold a password.
    package static var database: Self {
        let expected = "postgresql://USER:PASSWORD@HOST:PORT/DATABASE or host=… port=… dbname=… user=…"
        return Self(expected) { (text: String) throws(ValueProblem) in
            let shown = "the value, of \(text.utf8.count) bytes,"
            guard (1...2_048).contains(text.utf8.count), text.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
                throw ValueProblem("\(shown) is not \(expected)")
            }
            if let end = text.firstRange(of: "://"), !text[..<end.lowerBound].contains("=") {
                guard ["postgresql", "postgres"].contains(text[..<end.lowerBound]) else {
                    throw ValueProblem("\(shown) has another scheme; expected \(expected)")
                }
                guard !text.contains(" ") else { throw ValueProblem("\(shown) holds a space; expected %20 in its place") }
            } else {
                let name = text.drop { $0 == " " }.prefix { ($0.isASCII && $0.isLowercase) || $0 == "_" }
                guard !name.isEmpty, text.drop(while: { $0 == " " }).dropFirst(name.count).drop(while: { $0 == " " }).first == "=" else {
                    throw ValueProblem("\(shown) is not \(expected)")
                }
            }
            return text
        } write: {
            $0
        }
    }

    /// The secret of a cluster. ASCII, so that every editor and environment gives all servers the same bytes. No message contains the value.
    package static var clusterKey: Self {
        let length = 32...256
        let expected = "\(length.lowerBound) to \(length.upperBound) printable characters of ASCII without spaces"
        return Self(expected) { (text: String) throws(ValueProblem) in
            guard length.contains(text.utf8.count) else { throw ValueProblem("has \(text.utf8.count) bytes; expected \(expected)") }
            guard text.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
                throw ValueProblem("holds a space or a character that is not printable ASCII; expected \(expected)")
            }
            return text
        } write: {
            $0
        }
    }

    /// The address of a server's API, without a path.
    package static var nodeAddress: Self {
        let expected = "http://HOST:PORT or https://HOST:PORT"
        return Self(expected) { (text: String) throws(ValueProblem) in
            guard let end = text.firstRange(of: "://"), ["http", "https"].contains(text[..<end.lowerBound]),
                let server = try? HostPort(parsing: String(text[end.upperBound...])), !server.host.isEmpty, server.port > 0
            else { throw ValueProblem("\"\(text)\" is not \(expected)") }
            return text
        } write: {
            $0
        }
    }

    package static var nodeName: Self {
        let expected = "1 to \(NodeName.longest) of A-Z a-z 0-9 _ . -"
        return Self(expected) { (text: String) throws(ValueProblem) in
            guard (1...NodeName.longest).contains(text.utf8.count), text.utf8.allSatisfy(NodeName.isAllowed) else {
                throw ValueProblem("\"\(text)\" is not \(expected)")
            }
            return text
        } write: {
            $0
        }
    }
}
