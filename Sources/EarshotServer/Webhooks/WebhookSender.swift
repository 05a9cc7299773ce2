import Rooms

extension WebhookRequest.Sender {
    /// Uses the configured addresses, or else the open ports. Addresses are always complete.
    init(_ core: ServerCore) {
        let config = core.config
        let bound = core.addresses ?? Server.Addresses(rtmp: config.rtmp.listen, rtmps: nil, http: config.http.listen, https: nil)
        let address = PublicAddress(config: config, addresses: bound, requestHost: nil)
        self.init(
            key: core.keys.webhookKey, domain: Self.host(config.urls.rtmp) ?? config.rtmp.listen.host, node: config.rtmp.listen.host,
            rtmp: address.rtmp, http: address.http)
    }

    private static func host(_ url: String?) -> String? {
        guard let rest = url?.split(separator: "/", omittingEmptySubsequences: true).dropFirst().first else { return nil }
        return rest.hasPrefix("[") ? String(rest.prefix { $0 != "]" }) + "]" : String(rest.prefix { $0 != ":" })
    }
}

extension ServerConfig.Webhooks {
    /// All configured targets.
    var targets: [WebhookTarget] {
        self.urls.map { WebhookTarget(url: $0, format: .earshot) } + self.tencentURLs.map { WebhookTarget(url: $0, format: .tencent) }
    }
}
