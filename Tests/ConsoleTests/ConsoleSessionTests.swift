import Access
import HTTPServer
import HTTPTypes
import Support
import Testing

@testable import Console

@Suite struct ConsoleSessionTests {
    private let key = SessionKey()

    private func sessions(at nowMs: Int64 = 1_000) -> ConsoleSessions {
        ConsoleSessions(self.key, hosts: ConsoleHosts(["ops.example.com"])) { nowMs }
    }

    private func request(
        _ method: HTTPRequest.Method = .get, cookie: String?, host: String = "127.0.0.1:8080", _ fields: [(String, String)] = []
    ) throws -> HTTPRequest {
        var request = HTTPRequest(method: method, scheme: "http", authority: host, path: "/api/v1/rooms")
        if let cookie { request.headerFields[.cookie] = "other=1; earshot-console-8080=\(cookie)" }
        for (name, value) in fields { request.headerFields[try #require(HTTPField.Name(name))] = value }
        return request
    }

    @Test func aSessionIsReadBack() {
        let made = ConsoleSession(for: 7, nowMs: 1_000, key: self.key)
        let read = ConsoleSession(cookie: made.cookie, nowMs: 1_000 + ConsoleSession.lifetimeMs - 1, key: self.key)
        #expect(read == made)
        #expect(made.tokenID == 7 && made.csrf != made.cookie)
        #expect(ConsoleSession(cookie: made.cookie, nowMs: 1_000 + ConsoleSession.lifetimeMs, key: self.key) == nil, "it has expired")
        #expect(ConsoleSession(cookie: made.cookie, nowMs: 1_000, key: SessionKey()) == nil, "another server's")
        #expect(ConsoleSession(for: 7, nowMs: 1_000, key: self.key).cookie != made.cookie)
    }

    /// A page that stays open stays logged in, and so do other tabs, which know the former proof.
    @Test func aLoginIsRenewed() throws {
        let made = ConsoleSession(for: 7, nowMs: 1_000, key: self.key)
        let half = 1_000 + ConsoleSession.lifetimeMs / 2
        #expect(made.renewed(nowMs: half, key: self.key) == nil, "half of its time is left")
        let renewed = try #require(made.renewed(nowMs: half + 1, key: self.key))
        #expect(renewed.expiresAt == half + 1 + ConsoleSession.lifetimeMs && renewed.tokenID == 7)
        #expect(renewed.csrf == made.csrf && renewed.cookie != made.cookie)
        #expect(ConsoleSession(cookie: renewed.cookie, nowMs: renewed.expiresAt - 1, key: self.key) == renewed)
        #expect(ConsoleSession(for: 7, nowMs: 1_000, key: self.key).csrf != made.csrf, "another login's proof is another")
        // A login cannot be renewed forever.
        var session = made
        while let next = session.renewed(nowMs: session.expiresAt - 1, key: self.key) { session = next }
        #expect(session.expiresAt == 1_000 + ConsoleSession.longestMs)
    }

    /// While a cluster's key changes, a login and the proof that its page knows are good at servers with either key.
    @Test func aLoginOutlivesItsKey() throws {
        let (one, two) = ("a-key-of-a-cluster-0123456789abcdef", "another-key-of-a-cluster-0123456789")
        let old = try SessionKey(ClusterKey(current: one, previous: two), directory: "/dev/null/nowhere")
        let new = try SessionKey(ClusterKey(current: two, previous: one), directory: "/dev/null/nowhere")
        let made = ConsoleSession(for: 7, nowMs: 1_000, key: old)
        let read = try #require(ConsoleSession(cookie: made.cookie, nowMs: 1_000, key: new))
        #expect(read.tokenID == 7 && read.csrf != made.csrf)
        #expect(read.isProven(by: made.csrf, key: new) && read.isProven(by: read.csrf, key: new))
        #expect(made.isProven(by: read.csrf, key: old) && !made.isProven(by: "", key: old))
        #expect(!ConsoleSession(for: 7, nowMs: 1_000, key: new).isProven(by: made.csrf, key: new), "another login's")
    }

    /// Each byte of a cookie counts.
    @Test func aChangedCookieIsNone() {
        let cookie = Array(ConsoleSession(for: 1, nowMs: 1_000, key: self.key).cookie.utf8)
        for index in cookie.indices {
            var changed = cookie
            changed[index] = changed[index] == UInt8(ascii: "2") ? UInt8(ascii: "3") : UInt8(ascii: "2")
            #expect(ConsoleSession(cookie: String(decoding: changed, as: UTF8.self), nowMs: 1_000, key: self.key) == nil, "byte \(index)")
        }
        for text in ["", ".", "....", "1.1.99999999999999.x.", String(repeating: "a.", count: 5_000)] {
            #expect(ConsoleSession(cookie: text, nowMs: 1_000, key: self.key) == nil)
        }
    }

    @Test func aCookieAloneDoesNotSuffice() throws {
        let session = ConsoleSession(for: 3, nowMs: 1_000, key: self.key)
        let sessions = self.sessions()
        let own = ("Sec-Fetch-Site", "same-origin")
        let proof = ("X-Csrf-Token", session.csrf)
        // With the page's secret.
        #expect(try sessions.tokenID(of: self.request(.post, cookie: session.cookie, [own, proof])) == 3)
        #expect(try sessions.tokenID(of: self.request(.post, cookie: session.cookie, [proof])) == 3, "a browser that does not say")
        // Without: only what the browser itself says is the page's own, and only to read.
        #expect(try sessions.tokenID(of: self.request(.get, cookie: session.cookie, [own])) == 3)
        for (method, fields) in [
            (HTTPRequest.Method.get, []), (.post, [own]), (.get, [("Sec-Fetch-Site", "same-site")]), (.get, [("Sec-Fetch-Site", "none")]),
            (.post, [proof, ("Sec-Fetch-Site", "cross-site")]), (.post, [proof, ("Origin", "http://127.0.0.1:9090")]),
            (.delete, [own, ("X-Csrf-Token", "guess")]), (.post, [own, ("X-Csrf-Token", "")]),
        ] {
            let error = #expect(throws: APIError.self) { try sessions.tokenID(of: self.request(method, cookie: session.cookie, fields)) }
            #expect(error?.status == .forbidden, "\(method) \(fields)")
        }
    }

    @Test func oldAndForeignLoginsAreOver() throws {
        let session = ConsoleSession(for: 3, nowMs: 1_000, key: self.key)
        #expect(try self.sessions().tokenID(of: self.request(cookie: nil)) == nil)
        let late = self.sessions(at: 1_000 + ConsoleSession.lifetimeMs)
        for (sessions, cookie) in [(late, session.cookie), (self.sessions(), "nonsense")] {
            let error = #expect(throws: APIError.self) {
                try sessions.tokenID(of: self.request(cookie: cookie, [("X-Csrf-Token", session.csrf)]))
            }
            #expect(error?.status == .unauthorized)
        }
        // The cookie of a server on another port of this host is not looked at.
        #expect(try self.sessions().tokenID(of: self.request(cookie: session.cookie, host: "127.0.0.1:9090")) == nil)
    }

    @Test(arguments: [
        ("127.0.0.1:8080", true), ("[::1]:8080", true), ("localhost", true), ("a.localhost:1", true), ("OPS.example.com:8080", true),
        ("192.168.1.7", true), ("evil.example", false), ("ops.example.com.evil.example", false), ("127.0.0.1.evil.example", false),
        ("", false),
        ("a b", false),
    ]) func hosts(_ host: String, _ isServed: Bool) throws {
        let request = try self.request(cookie: nil, host: host)
        if isServed {
            try self.sessions().checkHost(request)
        } else {
            let error = #expect(throws: APIError.self) { try self.sessions().checkHost(request) }
            #expect(error?.status == .misdirectedRequest && error?.message.contains("console.hosts") == true)
        }
    }

    @Test func cookiesAreFenced() throws {
        let session = ConsoleSession(for: 3, nowMs: 0, key: self.key)
        let plain = ConsoleSessions.setCookie(session, for: try self.request(cookie: nil))
        #expect(plain == "earshot-console-8080=\(session.cookie); Path=/; Max-Age=43200; HttpOnly; SameSite=Strict")
        let secure = ConsoleSessions.setCookie(session, for: try self.request(cookie: nil, [("Origin", "https://127.0.0.1:8080")]))
        #expect(secure.hasSuffix("; Secure"))
        #expect(ConsoleSessions.setCookie(nil, for: try self.request(cookie: nil)).hasPrefix("earshot-console-8080=; Path=/; Max-Age=0;"))
        #expect(!"\(self.key)".contains("="), "printing the key shows nothing")
    }
}
