import Support

extension ConfigSetting {
    /// The servers through which browsers reach each other.
    static let ice: [ConfigSetting] = [
        .make(
            "ice.urls", \.ice.urls, .iceURLs, "STUN and TURN servers through which browsers reach each other, for mesh rooms.",
            applies: .reload),
        .make(
            "ice.username", \.ice.username, .optional(.turnUsername), "The same user name for everybody at these TURN servers.",
            applies: .reload),
        .make(
            "ice.credential", \.ice.credential, .optional(.secret(1...512)), "The password of that user name; browsers get it.",
            isSecret: true, applies: .reload),
        .make(
            "ice.secret", \.ice.secret, .optional(.secret(8...512)),
            "A secret shared with these TURN servers, in place of name and password: browsers get credentials that expire.",
            isSecret: true, applies: .reload),
        .make(
            "ice.lifetime", \.ice.lifetimeMs, .duration(60_000...(7 * day)), "How long the credentials made with ice.secret may be used.",
            applies: .reload),
    ]
}

extension ConfigValueKind<[String]> {
    /// URLs of STUN and TURN servers (RFC 7064 §3.1, RFC 7065 §3.1).
    package static var iceURLs: Self {
        Self(list: "a list of \(Self.iceURL)", atMost: 16, "URLs") { (value: String) throws(ValueProblem) in
            // Whoever writes a user into the URL writes the password too.
            guard !value.contains("@") else {
                throw ValueProblem("a URL has a user name in it; expected \(Self.iceURL), and ice.username and ice.credential beside")
            }
            guard Self.isICEURL(value) else { throw ValueProblem("\"\(value)\" is not \(Self.iceURL)") }
            return value
        }
    }

    private static let iceURL = "stun:HOST, turn:HOST or turns:HOST, each with :PORT if needed, the last two with ?transport=udp or tcp"

    private static func isICEURL(_ value: String) -> Bool {
        guard let scheme = ([ServerConfig.ICE.stun] + ServerConfig.ICE.turn).first(where: value.hasPrefix) else { return false }
        let parts = value.dropFirst(scheme.utf8.count).split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        // Browsers refuse any other query, and every query of stun (W3C WebRTC, "validate an ICE server URL").
        if parts.count == 2 {
            guard scheme != ServerConfig.ICE.stun, ["transport=udp", "transport=tcp"].contains(parts[1]) else { return false }
        }
        let host = String(parts[0])
        let hasPort = host.hasPrefix("[") ? !host.hasSuffix("]") : host.contains(":")
        guard let address = try? HostPort(parsing: hasPort ? host : "\(host):1") else { return false }
        return address.port > 0 && !address.host.contains("%")
    }
}

extension ConfigValueKind<String> {
    /// RFC 8489 §14.3: less than 509 bytes. Without control characters and spaces, which TURN servers and browsers prepare differently.
    package static var turnUsername: Self {
        let expected = "1 to 508 printable characters of ASCII without spaces"
        return Self(expected) { (text: String) throws(ValueProblem) in
            guard (1...508).contains(text.utf8.count), text.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
                throw ValueProblem("the value, of \(text.utf8.count) bytes, is not \(expected)")
            }
            return text
        } write: {
            $0
        }
    }
}
