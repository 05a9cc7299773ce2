package import NIOCore
package import ServerConfiguration
package import Support

/// Prefixes of the URLs that the server hands out. A plain value.
package struct PublicAddress: Sendable, Equatable {
    /// The path of the API.
    package static let apiPrefix = "/api/v1"

    /// "rtmp://live.example.com", without a slash at its end.
    package let rtmp: String
    /// Nil while RTMPS is off.
    package let rtmps: String?
    package let http: String
    /// Whether streams play by WebRTC.
    package let hasWebRTC: Bool

    /// Uses the settings `urls.*`, or else the listener's address and real port.
    ///
    /// A listener on every address (`0.0.0.0`) has no address of its own. It uses `requestHost`, the Host header of the call: the name by
    /// which the caller reaches this machine. Only for URLs that go to this caller.
    package init(config: ServerConfig, addresses: BoundAddresses, requestHost: String?) {
        let caller = requestHost.flatMap(Self.host)
        self.rtmp = Self.trimmed(config.urls.rtmp) ?? Self.base("rtmp", addresses.rtmp, usual: 1935, caller)
        // Players assume port 443 for a URL without one.
        self.rtmps = Self.trimmed(config.urls.rtmps) ?? addresses.rtmps.map { Self.base("rtmps", $0, usual: 443, caller) }
        self.hasWebRTC = config.webrtc.isEnabled
        self.http = Self.trimmed(config.urls.http) ?? Self.base("http", addresses.http, usual: 80, caller)
    }

    /// The same for URLs that go to others than the caller. The caller chooses its Host header, so a listener on every address uses the address at
    /// which the request arrived, `arrivedAt`.
    package init(forOthers config: ServerConfig, addresses: BoundAddresses, arrivedAt: SocketAddress?) {
        let bytes = arrivedAt?.ipBytes ?? []
        let host = arrivedAt?.ipAddress.map { bytes.count == 16 ? "[\($0)]" : $0 }
        self.init(config: config, addresses: addresses, requestHost: host)
    }

    private static func trimmed(_ url: String?) -> String? {
        guard var text = url else { return nil }
        while text.hasSuffix("/") { text.removeLast() }
        return text
    }

    private static func base(_ scheme: String, _ listener: HostPort, usual: Int, _ caller: String?) -> String {
        let host = listener.isEverywhere ? caller ?? "localhost" : listener.host
        let address = HostPort(host: host, port: listener.port).description
        return "\(scheme)://\(listener.port == usual ? String(address.dropLast("\(listener.port)".utf8.count + 1)) : address)"
    }

    /// The host in a Host header, without its port. Nil unless it is a plain host name or address: the header is untrusted.
    package static func host(_ header: String) -> String? {
        guard header.utf8.count <= 300 else { return nil }
        for text in [header, "\(header):0"] {
            do throws(ValueProblem) {
                return try HostPort(parsing: text).host
            } catch {
                continue
            }
        }
        return nil
    }
}
