import ServerConfiguration
import Support

/// Whom the settings let in: open doors on public addresses, proxies that anybody may claim to be. Pure.
enum AccessChecks {
    static func judge(_ config: ServerConfig) -> [DoctorResult] {
        [self.doors(config), self.proxies(config)]
    }

    /// Whether an address that is nobody's network in particular is let in (RFC 5737 §3, RFC 3849 §2: documentation).
    private static func admitsEverybody(_ networks: [CIDR]) -> Bool {
        networks.contains(address: [203, 0, 113, 7])
            || networks.contains(address: [0x20, 0x01, 0x0D, 0xB8] + [UInt8](repeating: 7, count: 12))
    }

    private static func isPublic(_ address: HostPort?) -> Bool {
        guard let address else { return false }
        let host = address.host.lowercased()
        if host == "localhost" { return false }
        guard let bytes = IPText.v4(host) ?? IPText.v6(host) else { return true }
        return !CIDR.loopback.contains(address: bytes)
    }

    private static func doors(_ config: ServerConfig) -> DoctorResult {
        let name = "public addresses"
        let listeners = [
            ("rtmp.listen", Optional(config.rtmp.listen)), ("http.listen", config.http.listen), ("rtmps.listen", config.rtmps.address),
            ("https.listen", config.httpsAddress),
        ]
        let open = listeners.filter { self.isPublic($0.1) }
        guard !open.isEmpty else { return .pass(name, "none: every port listens on this machine only") }
        let where_ = open.map(\.0).joined(separator: ", ") + " beyond this machine"
        let publish = self.admitsEverybody(config.access.publishFrom) && config.hooks.onPublish == nil
        let play = self.admitsEverybody(config.access.playFrom) && config.hooks.onPlay == nil
        let api = self.admitsEverybody(config.access.apiFrom)
        if publish {
            return .fail(
                name, "\(where_), and access.publishFrom lets everybody push without a credential",
                "name networks in access.publishFrom, or leave it out and hand out signed URLs (earshot rooms push-url)")
        }
        if play || api {
            let doors = [play ? "access.playFrom lets everybody play" : nil, api ? "access.apiFrom lets everybody try API tokens" : nil]
            return .warn(
                name, "\(where_); \(doors.compactMap { $0 }.joined(separator: ", "))",
                "right for public streams; otherwise name networks, and hand out signed URLs (earshot rooms play-urls)")
        }
        return .pass(name, "\(where_); pushing and playing from there need a credential, the API a token")
    }

    private static func proxies(_ config: ServerConfig) -> DoctorResult {
        let name = "proxies"
        let access = config.access
        var problems: [String] = []
        if self.admitsEverybody(access.trustedProxies) {
            problems.append("access.trustedProxies believes everybody's X-Forwarded-For: any client can claim any address")
        }
        if self.admitsEverybody(access.proxyProtocolFrom) {
            problems.append("access.proxyProtocolFrom is everybody: any client can claim any address, and none without the header gets in")
        }
        guard problems.isEmpty else {
            return .fail(name, problems.joined(separator: "; "), "name only the proxies' own addresses")
        }
        let named = [("X-Forwarded-For", access.trustedProxies), ("PROXY protocol", access.proxyProtocolFrom)].filter { !$0.1.isEmpty }
        guard !named.isEmpty else { return .pass(name, "none is believed") }
        return .pass(name, named.map { "\($0.0) of \($0.1.map(\.description).joined(separator: ", "))" }.joined(separator: "; "))
    }
}
