package import Access
import ControlAPI
import HTTPAPI
package import HTTPServer
package import HTTPTypes
import Support

/// Logins of the console's browsers: their cookie, and the further proof that a request with it needs. Any thread.
///
/// The browser sends the cookie for every page's requests, so it is not enough: the console's page adds the login's own secret in `X-Csrf-Token`.
/// Pictures and downloads, to which a page cannot add a header, are GETs that the browser marks as same-origin.
package final class ConsoleSessions: BrowserSessions {
    package let key: SessionKey
    private let hosts: ConsoleHosts
    private let nowMs: @Sendable () -> Int64

    package init(_ key: SessionKey, hosts: ConsoleHosts, nowMs: @escaping @Sendable () -> Int64 = { WallClock.ms }) {
        self.key = key
        self.hosts = hosts
        self.nowMs = nowMs
    }

    package func tokenID(of request: HTTPRequest) throws(APIError) -> Int64? { try self.provenSession(of: request)?.tokenID }

    /// The login of a request that comes from the console's page; nil when there is none.
    func provenSession(of request: HTTPRequest) throws(APIError) -> ConsoleSession? {
        guard let cookie = Self.cookie(of: request) else { return nil }
        try self.checkHost(request)
        guard let session = ConsoleSession(cookie: cookie, nowMs: self.nowMs(), key: self.key) else {
            throw APIError(.unauthorized, .unauthorized, "This login is over; log in again.")
        }
        let proof = Self.proof.flatMap { request.headerFields[$0] } ?? ""
        let isProven = session.isProven(by: proof, key: self.key)
        let reads = request.method == .get || request.method == .head
        guard RequestOrigin.isOwn(request), isProven || (reads && RequestOrigin.isSurelyOwn(request)) else {
            throw APIError(.forbidden, .forbidden, "This request does not come from the console's page; expected its X-Csrf-Token.")
        }
        return session
    }

    /// The request's login; nil when there is none. The console's page uses it to get its secret.
    func session(of request: HTTPRequest) -> ConsoleSession? {
        Self.cookie(of: request).flatMap { ConsoleSession(cookie: $0, nowMs: self.nowMs(), key: self.key) }
    }

    /// The login with more time, when half of its time has passed.
    func renewed(_ session: ConsoleSession) -> ConsoleSession? { session.renewed(nowMs: self.nowMs(), key: self.key) }

    func start(for tokenID: Int64) -> ConsoleSession { ConsoleSession(for: tokenID, nowMs: self.nowMs(), key: self.key) }

    /// Throws 421 for a name that is not the server's, since another site's name may lead to this server.
    func checkHost(_ request: HTTPRequest) throws(APIError) {
        guard let authority = request.authority, let host = PublicAddress.host(authority), self.hosts.contains(host) else {
            throw APIError(
                .misdirectedRequest, .forbidden,
                "The console is not served under this name. Open it by the server's address, or add the name to the setting console.hosts.")
        }
    }

    // MARK: The cookie

    /// The port is part of the name: cookies of one host are shared by its ports, and by the servers there.
    private static func name(_ request: HTTPRequest) -> String {
        let port = request.authority.flatMap { $0.split(separator: ":").last }.flatMap { Int($0) }
        return port.map { "earshot-console-\($0)" } ?? "earshot-console"
    }

    private static func cookie(of request: HTTPRequest) -> String? {
        let name = Self.name(request)
        for pair in request.headerFields[values: .cookie].joined(separator: ";").split(separator: ";") {
            let parts = pair.split(separator: "=", maxSplits: 1)
            if parts.count == 2, parts[0].filter({ $0 != " " }) == name { return String(parts[1]) }
        }
        return nil
    }

    /// The Set-Cookie value that sets the login, or deletes it (nil). `Secure` if the page was loaded over HTTPS.
    static func setCookie(_ session: ConsoleSession?, for request: HTTPRequest) -> String {
        let isSecure = request.headerFields[.origin]?.lowercased().hasPrefix("https:") ?? false
        let value = session?.cookie ?? ""
        let age = session == nil ? 0 : ConsoleSession.lifetimeMs / 1_000
        return "\(Self.name(request))=\(value); Path=/; Max-Age=\(age); HttpOnly; SameSite=Strict" + (isSecure ? "; Secure" : "")
    }

    private static let proof = HTTPField.Name("X-Csrf-Token")
}
