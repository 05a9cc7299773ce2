import ServerConfiguration
import Support

/// Checks whom the settings admit: open access on public addresses, and proxy addresses that anybody may have. Pure.
enum AccessChecks {
    static func judge(_ config: ServerConfig) -> [DoctorResult] { [self.doors(config), self.proxies(config)] }

    private static func doors(_ config: ServerConfig) -> DoctorResult {
        let name = "public addresses"
        let open = ConfigWarnings.publicPorts(config)
        guard !open.isEmpty else { return .pass(name, "none: every port listens on this machine only") }
        let where_ = open.joined(separator: ", ") + " beyond this machine"
        let publish = ConfigWarnings.admitsEverybody(config.access.publishFrom) && config.hooks.onPublish == nil
        let play = ConfigWarnings.admitsEverybody(config.access.playFrom) && config.hooks.onPlay == nil
        let api = ConfigWarnings.admitsEverybody(config.access.apiFrom)
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
        if ConfigWarnings.admitsEverybody(access.trustedProxies) {
            problems.append("access.trustedProxies believes everybody's X-Forwarded-For: any client can claim any address")
        }
        if ConfigWarnings.admitsEverybody(access.proxyProtocolFrom) {
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
