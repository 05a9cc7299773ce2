import Rooms
package import Support

/// Warns about settings that are valid and probably a mistake. Pure.
package enum ConfigWarnings {
    /// One line each.
    package static func of(_ config: ServerConfig) -> [String] {
        let open = self.openToAll(config).map { [$0] } ?? self.pushableByAll(config).map { [$0] } ?? []
        return open + self.improbable(config)
    }

    /// A duration without its unit, of a thousand seconds or more: probably meant as milliseconds.
    static func ofUnit(_ setting: ConfigSetting, _ values: [String]) -> String? {
        guard setting.expected.hasPrefix("a duration"), let text = values.first, let seconds = Int64(text), seconds >= 1_000,
            let milliseconds = ConfigUnits.milliseconds(text)
        else { return nil }
        return "\(setting.path): \(text) counts as seconds (\(ConfigUnits.duration(milliseconds: milliseconds)));"
            + " write \(text)s, or \(text)ms if that was meant"
    }

    /// Values that no server needs.
    private static func improbable(_ config: ServerConfig) -> [String] {
        var all: [String] = []
        let text = ConfigUnits.duration(milliseconds:)
        if config.relay.maxBehindMs > 300_000 {
            all.append("relay.maxBehind: slow viewers may be \(text(config.relay.maxBehindMs)) behind live, and all of it stays in memory")
        }
        if config.rooms.policy.retentionMs < 60_000 {
            all.append(
                "rooms.policy.retention: ended rooms are forgotten after \(text(config.rooms.policy.retentionMs)), before anybody can ask")
        }
        if config.ice.hasTURN, !config.ice.hasCredential {
            all.append(
                "ice.urls: its TURN servers are not handed out without a credential; set ice.secret, or ice.username and ice.credential")
        }
        if config.limits.publishersTotal > config.limits.connections {
            all.append(
                "limits.publishersTotal (\(config.limits.publishersTotal)) is never reached: limits.connections is"
                    + " \(config.limits.connections)")
        }
        return all
    }

    /// Pushing without any restriction, on a port that other machines reach.
    private static func pushableByAll(_ config: ServerConfig) -> String? {
        let ports = self.publicPorts(config).filter { $0.hasPrefix("rtmp") }
        guard self.admitsEverybody(config.access.publishFrom), config.hooks.onPublish == nil, !ports.isEmpty else { return nil }
        return
            "everybody may push (access.publishFrom is any), and \(ports.joined(separator: ", ")) can be reached from other machines; name"
            + " networks, or leave it out and hand out signed URLs"
    }

    /// Pushing, playing and the API all without any restriction, on ports that other machines reach.
    private static func openToAll(_ config: ServerConfig) -> String? {
        let access = config.access
        guard [access.publishFrom, access.playFrom, access.apiFrom].allSatisfy({ self.admitsEverybody($0) }) else { return nil }
        guard config.hooks.onPublish == nil || config.hooks.onPlay == nil else { return nil }
        let ports = self.publicPorts(config)
        guard !ports.isEmpty else { return nil }
        return "everybody may push, play and call the API (access.publishFrom, access.playFrom and access.apiFrom are any), and"
            + " \(ports.joined(separator: ", ")) can be reached from other machines; name networks, or leave these three out and hand out"
            + " signed URLs"
    }

    /// The settings of ports that other machines may reach.
    package static func publicPorts(_ config: ServerConfig) -> [String] {
        let listeners = [
            ("rtmp.listen", Optional(config.rtmp.listen)), ("http.listen", config.http.listen), ("rtmps.listen", config.rtmps.address),
            ("https.listen", config.httpsAddress),
        ]
        return listeners.filter { self.isPublic($0.1) }.map(\.0)
    }

    /// Whether an arbitrary address is admitted. Tests a documentation address (RFC 5737 §3, RFC 3849 §2), which belongs to no real network.
    package static func admitsEverybody(_ networks: [CIDR]) -> Bool {
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
}
