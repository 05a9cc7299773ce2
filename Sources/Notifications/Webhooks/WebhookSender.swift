package import Access
package import Rooms
package import ServerConfiguration
package import Support

/// This server's properties that bodies state.
package struct WebhookSender: Sendable {
    package private(set) var key: String
    /// Push domain, for Tencent's bodies.
    let domain: String
    /// This node's address, for Tencent's bodies.
    let node: String
    /// Public RTMP address: "rtmp://live.example.com".
    package var rtmp: String
    /// Public HTTP address.
    package var http: String
    /// Signs links to files.
    let links: FileLinks

    /// Links live longer than a file's notice may wait at the back end for its work: a day from each sending.
    static let linkSeconds: Int64 = 86_400

    /// The whole URL of a file of the API, which needs no token.
    func link(_ path: String, atSeconds: Int64) -> String {
        self.http + self.links.signed(path, expiresAt: atSeconds + Self.linkSeconds)
    }

    /// The same sender with a target's own key; nil keeps the server's.
    func signing(with key: String?) -> WebhookSender {
        var sender = self
        if let key { sender.key = key }
        return sender
    }
}

extension WebhookSender {
    /// Uses the configured addresses, or else the open ports. Addresses are always complete.
    package init(config: ServerConfig, addresses: BoundAddresses?, keys: KeyRing) {
        let bound = addresses ?? BoundAddresses(rtmp: config.rtmp.listen, rtmps: nil, http: config.http.listen, https: nil)
        let address = PublicAddress(config: config, addresses: bound, requestHost: nil)
        self.init(
            key: keys.webhookKey, domain: Self.host(config.urls.rtmp) ?? config.rtmp.listen.host, node: config.rtmp.listen.host,
            rtmp: address.rtmp, http: address.http, links: FileLinks(keys))
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
