import Access
package import Rooms
package import ServerConfiguration
package import Support

extension WebhookRequest.Sender {
    /// Uses the configured addresses, or else the open ports. Addresses are always complete.
    package init(config: ServerConfig, addresses: BoundAddresses?, key: String) {
        let bound = addresses ?? BoundAddresses(rtmp: config.rtmp.listen, rtmps: nil, http: config.http.listen, https: nil)
        let address = PublicAddress(config: config, addresses: bound, requestHost: nil)
        self.init(
            key: key, domain: Self.host(config.urls.rtmp) ?? config.rtmp.listen.host, node: config.rtmp.listen.host,
            rtmp: address.rtmp, http: address.http)
    }

    private static func host(_ url: String?) -> String? {
        guard let rest = url?.split(separator: "/", omittingEmptySubsequences: true).dropFirst().first else { return nil }
        return rest.hasPrefix("[") ? String(rest.prefix { $0 != "]" }) + "]" : String(rest.prefix { $0 != ":" })
    }
}

extension ServerConfig.Webhooks {
    /// All configured targets.
    package var targets: [WebhookTarget] {
        self.urls.map { WebhookTarget(url: $0, format: .earshot) } + self.tencentURLs.map { WebhookTarget(url: $0, format: .tencent) }
    }
}
