import CommandSupport
import ServerConfiguration
import Support

/// Whether webhook and hook targets of the settings can be connected to from this machine. Nothing is sent to them.
enum TargetCheck {
    static func run(_ config: ServerConfig) async -> [DoctorResult] {
        let hooks = [
            ("hooks.onPublish", config.hooks.onPublish), ("hooks.onPlay", config.hooks.onPlay),
            ("hooks.onUnpublish", config.hooks.onUnpublish),
            ("hooks.onStop", config.hooks.onStop),
        ].compactMap { setting, url in url.map { (setting, $0) } }
        let targets =
            config.webhooks.urls.map { ("webhooks.urls", $0) } + config.webhooks.tencentURLs.map { ("webhooks.tencentUrls", $0) } + hooks
        var results: [DoctorResult] = []
        for (setting, url) in targets {
            let name = "target \(setting)"
            guard let address = ServerAddress(argument: String(url.prefix { $0 != "?" && $0 != "#" })) else { continue }
            let origin = "\(address.isTLS ? "https" : "http")://\(address.authority)"
            if let why = await PortChecks.whyNoConnection(HostPort(host: address.host, port: address.port)) {
                results.append(
                    .fail(
                        name, "\(origin) cannot be reached: \(why)",
                        "start it, or correct \(setting): deliveries wait and are tried again until then"))
            } else {
                results.append(.pass(name, "\(origin) accepts connections"))
            }
        }
        return results
    }
}
