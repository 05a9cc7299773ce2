package import Access
package import HTTPServer
package import HTTPTypes
package import Hummingbird
import LibC
package import NIOCore
import NIOHTTP1
package import ServerConfiguration
package import Support
import Synchronization

/// The page behind a request, and the host name that it used for the server.
package struct PageRequest: Sendable {
    /// RFC 6454 §7. A browser sends one at most.
    var origins: [String] = []
    /// Fetch Metadata §2.1; over plain HTTP only for loopback.
    var fetchSite: String?
    /// The Host header, or HTTP/2's authority.
    var hosts: [String] = []
    /// The server's own address on this connection; asked for by few requests, and a call of the system.
    let local: @Sendable () -> SocketAddress?

    private static let fetchSite = HTTPField.Name("Sec-Fetch-Site")

    init(
        origins: [String], fetchSite: String?, hosts: [String], local: @escaping @Sendable () -> SocketAddress? = { nil }
    ) {
        self.origins = origins
        self.fetchSite = fetchSite
        self.hosts = hosts
        self.local = local
    }

    package init(_ request: HTTPHandoffRequest) { self.init(request.head, request.channel) }

    init(_ head: HTTPRequestHead, _ channel: any Channel) {
        self.init(
            origins: head.headers["origin"], fetchSite: head.headers.first(name: "sec-fetch-site"), hosts: head.headers["host"],
            local: { channel.localAddress })
    }

    package init(_ request: Request, _ channel: any Channel) {
        self.init(
            origins: request.headers[values: .origin], fetchSite: Self.fetchSite.flatMap { request.headers[$0] },
            hosts: request.head.authority.map { [$0] } ?? [], local: { channel.localAddress })
    }
}

/// Proof that a request's credential has been checked and is good. A value.
package struct VerifiedCaller: Sendable, Equatable {
    /// Nil if the address alone admits the caller. `shown`: whether the request showed a credential, the server's or one for the hook; a hook
    /// vouches for no page that brought nothing to be checked.
    package init?(_ pass: AdmissionPass, shown: Bool) { guard shown, pass.isVerified else { return nil } }

    /// A ``ChannelToken`` that comes from a request exists only once its signature is checked.
    package init(_ token: ChannelToken) {}
}

/// Decides which pages may play, and which host names work without a credential. Any thread. The origins in the settings hold at once after a reload.
///
/// If the address alone admits a person, every page that this person opens could use that, because the browser's requests come from the same address.
/// So a request without a credential must meet two conditions:
///
/// - It does not come from a page of another origin, by `Origin` or `Sec-Fetch-Site`, unless `http.allowOrigin` names that origin. (CORS restricts
///   neither `<video>` nor WebSockets.) Clients other than browsers send neither header.
/// - It uses one of the server's own names, so that a stranger's page cannot pass as the server's own through a name that leads here (DNS rebinding).
///
/// A good credential must have been given to the page, so with one (``VerifiedCaller``) `http.allowOrigin` alone decides. A page that may play with one
/// may read why it is refused without.
package struct PageRules: Sendable {
    private let config: Live<ServerConfig>
    private let acceptsAnyHost: Bool
    /// The server's own names and addresses, in lower case.
    private let hosts: Set<String>
    /// Origin of the public URL in the settings.
    private let ownOrigin: String?
    private let recent = RecentHost()

    /// The last Host header that has a name of this server, whatever the connection: players go on with the same.
    private final class RecentHost: Sendable { let header = Mutex<String?>(nil) }

    /// Private addresses: pages in a home or company network have them, pages from elsewhere never do.
    static let local = [
        "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16", "::1", "fc00::/7", "fe80::/10",
    ]
    .compactMap { try? CIDR(parsing: $0) }

    package init(_ live: Live<ServerConfig>) {
        self.config = live
        let config = live.current
        self.acceptsAnyHost = config.http.hosts.contains("any")
        self.ownOrigin = config.urls.http.flatMap(Self.origin)
        let urls = [config.urls.rtmp, config.urls.rtmps, config.urls.http].compactMap { $0.flatMap(Self.origin) }
        let listeners = [config.http.listen, config.httpsAddress].compactMap { $0?.host }
        let named = urls.compactMap { PublicAddress.host(String($0.drop { $0 != "/" }.dropFirst(2))) } + config.http.hosts + listeners
        self.hosts = Set((named + Self.machine).map { $0.lowercased() })
    }

    /// May this page ask? Returns the answer's cross-origin headers. Throws the refusal, with such headers if the page may ask with a credential.
    ///
    /// `caller` is nil until a credential has been found good: showing one is not enough, since any page can show anything.
    package func check(_ request: PageRequest, _ caller: VerifiedCaller?) throws(APIError) -> [(HTTPField.Name, String)] {
        let withCredential = self.withCredential(request)
        guard caller == nil else { return withCredential }
        do throws(APIError) {
            return try self.checkWithoutCredential(request)
        } catch {
            var error = error
            for (name, value) in withCredential { error.headers[name] = value }
            throw error
        }
    }

    private func checkWithoutCredential(_ request: PageRequest) throws(APIError) -> [(HTTPField.Name, String)] {
        try self.checkHost(request)
        let named = self.named(request)
        if named == nil {
            for origin in request.origins where !self.isOwn(origin, request) { throw Self.foreign("the origin \(Self.shown(origin))") }
            // "same-site" means another port or name of the same owner.
            if request.fetchSite?.lowercased() == "cross-site" { throw Self.foreign("another site (Sec-Fetch-Site)") }
        }
        // Covers media that a page embeds without a preflight (Fetch §3.7) if the browser does not identify the page.
        let embedding: [(HTTPField.Name, String)] = Self.resourcePolicy.map { [($0, "same-site")] } ?? []
        return named.map { [(.accessControlAllowOrigin, $0)] } ?? embedding
    }

    /// The page's origin, if the settings name it.
    private func named(_ request: PageRequest) -> String? {
        guard request.origins.count == 1, let origin = request.origins.first?.lowercased(), origin != "*" else { return nil }
        return self.config.http.allowOrigin.contains(origin) ? origin : nil
    }

    private var admitsAll: Bool { self.config.http.allowOrigin.contains("*") }

    /// The refusal of a request that its address alone would admit; nil when the page may ask.
    package func objection(_ request: PageRequest) -> APIError? {
        do throws(APIError) {
            _ = try self.check(request, nil)
            return nil
        } catch {
            return error
        }
    }

    /// The cross-origin headers of answers to requests with a credential, refusals too: a page's script may read why.
    package func withCredential(_ request: PageRequest) -> [(HTTPField.Name, String)] {
        let origin = self.admitsAll ? "*" : self.named(request)
        return origin.map { [(.accessControlAllowOrigin, $0)] } ?? []
    }

    /// Whether a page of this origin may open a WebSocket with a credential. Browsers restrict requests to other origins but not
    /// WebSockets, so the server must check (RFC 6455 §10.2). The server's own pages always may.
    package func letsSocket(_ request: PageRequest) -> Bool {
        self.admitsAll || self.named(request) != nil || request.origins.allSatisfy { self.isOwn($0, request) }
    }

    private func isOwn(_ origin: String, _ request: PageRequest) -> Bool {
        let origin = origin.lowercased()
        if origin == self.ownOrigin { return true }
        guard request.hosts.count == 1, let host = request.hosts.first?.lowercased(), !host.isEmpty else { return false }
        return origin == "http://\(host)" || origin == "https://\(host)"
    }

    // MARK: Names of the server

    /// Throws when the Host header has no name of this server.
    package func checkHost(_ request: PageRequest) throws(APIError) {
        // HTTP/1.0 needs no Host; browsers do not speak it.
        guard !self.acceptsAnyHost, !request.hosts.isEmpty else { return }
        if request.hosts.count == 1, let header = request.hosts.first {
            if self.recent.header.withLock({ $0 == header }) { return }
            if let host = PublicAddress.host(header).map({ $0.lowercased() }) {
                if self.isKnown(host) { return self.recent.header.withLock { $0 = header } }
                if let address = Self.address(host), request.local().map({ CIDR.same($0.ipBytes, address) }) == true { return }
            }
        }
        throw APIError(
            .forbidden, .forbidden,
            "\(Self.shown(request.hosts.joined(separator: ", "))) is not a known name of this server; add it to the server's setting"
                + " http.hosts, or use a signed URL or a token.")
    }

    /// Whether it is a name or address of this server on every connection.
    private func isKnown(_ host: String) -> Bool {
        if self.hosts.contains(host) || host == "localhost" || host.hasSuffix(".localhost") { return true }
        return Self.address(host).map { Self.local.contains(address: $0) } ?? false
    }

    private static func address(_ host: String) -> [UInt8]? { IPText.v4(host) ?? IPText.v6(host) }

    /// The origin of a URL, as in "https://live.example.com:8443". Browsers omit the scheme's default port.
    private static func origin(_ url: String) -> String? {
        let url = url.lowercased()
        guard let scheme = url.firstIndex(of: ":"), url[scheme...].hasPrefix("://") else { return nil }
        let rest = url[url.index(scheme, offsetBy: 3)...]
        var origin = url[..<scheme] + "://" + rest.prefix { !["/", "?", "#"].contains($0) }
        for usual in ["http://:80", "https://:443"] {
            let parts = usual.split(separator: ":")
            if origin.hasPrefix("\(parts[0])://"), origin.hasSuffix(":\(parts[2])") { origin.removeLast(parts[2].utf8.count + 1) }
        }
        return String(origin)
    }

    /// The machine's host name and its name in multicast DNS (RFC 6762).
    private static let machine: [String] = {
        var bytes = [CChar](repeating: 0, count: 256)
        guard gethostname(&bytes, bytes.count - 1) == 0 else { return [] }
        let name = String(decoding: bytes.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        guard !name.isEmpty else { return [] }
        return name.contains(".") ? [name] : [name, "\(name).local"]
    }()

    // MARK: Messages

    private static let resourcePolicy = HTTPField.Name("Cross-Origin-Resource-Policy")

    private static func foreign(_ what: String) -> APIError {
        APIError(
            .forbidden, .forbidden,
            "Pages of \(what) may not do this here without a credential; give them a signed URL or a token, or name their origin in the server's"
                + " setting http.allowOrigin.")
    }

    /// The quoted text, at most 100 characters, with "?" for every character that a name cannot hold.
    private static func shown(_ text: String) -> String {
        let plain = text.unicodeScalars.prefix(100).map { (0x21..<0x7F).contains($0.value) && $0 != "\"" ? Character($0) : "?" }
        return "\"\(String(plain))\""
    }
}

extension Response {
    /// Adds `access`, the headers of ``PageRules`` that let the requesting page read the answer. They differ by page, so it has Vary for caches.
    package func readable(_ access: [(HTTPField.Name, String)]) -> Response {
        var response = self
        for (name, value) in access { response.headers[name] = value }
        response.headers[.vary] = "Origin"
        return response
    }
}
