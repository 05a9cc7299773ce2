package import HTTPTypes
import Support

/// Which page a request comes from, as its browser says. Pure.
package enum RequestOrigin {
    /// Whether the request can come from the console's own page. `Sec-Fetch-Site` (Fetch Metadata) is believed where it is sent, since pages
    /// cannot set it; otherwise `Origin`. A client that sends neither is no browser, or an old one.
    package static func isOwn(_ request: HTTPRequest) -> Bool {
        if let site = Self.fetchSite.flatMap({ request.headerFields[$0] }) { return site == "same-origin" || site == "none" }
        guard let origin = request.headerFields[.origin] else { return true }
        guard let authority = request.authority?.lowercased() else { return false }
        return origin.lowercased() == "http://\(authority)" || origin.lowercased() == "https://\(authority)"
    }

    /// Whether the browser says that the console's own page asks. Nothing else is proof enough for a request without the page's own header.
    static func isSurelyOwn(_ request: HTTPRequest) -> Bool { Self.fetchSite.flatMap { request.headerFields[$0] } == "same-origin" }

    private static let fetchSite = HTTPField.Name("Sec-Fetch-Site")
}

/// The names under which the console is served. A name of somebody else's that leads here (DNS rebinding) is not one of them. A value.
package struct ConsoleHosts: Sendable {
    private let names: Set<String>

    /// `names`: beside addresses and localhost.
    package init(_ names: [String]) { self.names = Set(names.map { $0.lowercased() }) }

    package func contains(_ host: String) -> Bool {
        let host = host.lowercased()
        return IPText.v4(host) != nil || IPText.v6(host) != nil || host == "localhost" || host.hasSuffix(".localhost")
            || self.names.contains(host)
    }
}
