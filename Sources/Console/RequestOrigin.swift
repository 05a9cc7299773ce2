package import HTTPTypes
import Support

/// Checks which page a request comes from, as its browser reports it. Pure.
package enum RequestOrigin {
    /// Whether the request can come from the console's own page. `Sec-Fetch-Site` (Fetch Metadata) decides if it is present, since pages cannot set
    /// it; otherwise `Origin` does. A client that sends neither is not a browser, or is an old one.
    package static func isOwn(_ request: HTTPRequest) -> Bool {
        if let site = Self.fetchSite.flatMap({ request.headerFields[$0] }) { return site == "same-origin" || site == "none" }
        guard let origin = request.headerFields[.origin] else { return true }
        guard let authority = request.authority?.lowercased() else { return false }
        return origin.lowercased() == "http://\(authority)" || origin.lowercased() == "https://\(authority)"
    }

    /// Whether the browser reports that the request comes from the console's own page. A request without the page's own header needs this proof.
    static func isSurelyOwn(_ request: HTTPRequest) -> Bool { Self.fetchSite.flatMap { request.headerFields[$0] } == "same-origin" }

    private static let fetchSite = HTTPField.Name("Sec-Fetch-Site")
}

/// The names under which the console is served. They exclude a stranger's name that leads here (DNS rebinding). A value.
package struct ConsoleHosts: Sendable {
    private let names: Set<String>

    /// `names`: accepted in addition to addresses and localhost.
    package init(_ names: [String]) { self.names = Set(names.map { $0.lowercased() }) }

    package func contains(_ host: String) -> Bool {
        let host = host.lowercased()
        return IPText.v4(host) != nil || IPText.v6(host) != nil || host == "localhost" || host.hasSuffix(".localhost")
            || self.names.contains(host)
    }
}
