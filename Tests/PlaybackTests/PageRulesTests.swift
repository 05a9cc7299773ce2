import Foundation
import HTTPServer
import HTTPTypes
import NIOCore
import ServerConfiguration
import Support
import Testing

@testable import Access
@testable import Playback

/// The rules for requests that play without a credential.
@Suite struct PageRulesTests {
    private static func rules(_ configure: (inout ServerConfig) -> Void = { _ in }) -> PageRules {
        var config = ServerConfig()
        configure(&config)
        return PageRules(Live(config))
    }

    private static func ask(
        _ rules: PageRules, host: String? = "127.0.0.1:8080", origin: String? = nil, site: String? = nil, local: String = "127.0.0.1"
    ) throws -> [String: String] {
        let address = try SocketAddress(ipAddress: local, port: 8_080)
        let request = PageRequest(
            origins: origin.map { [$0] } ?? [], fetchSite: site, hosts: host.map { [$0] } ?? [], local: { address })
        let headers = try rules.check(request, nil)
        return Dictionary(uniqueKeysWithValues: headers.map { ($0.0.rawName.lowercased(), $0.1) })
    }

    /// Values of Host, and whether they name the server.
    @Test(arguments: [
        ("127.0.0.1:8080", true), ("127.0.0.1", true), ("127.5.6.7:1", true), ("[::1]:8080", true), ("localhost:8080", true),
        ("LOCALHOST", true), ("cam.localhost:8080", true), ("192.168.1.5:8080", true), ("10.0.0.1", true),
        ("172.16.0.9", true), ("[fd00::5]:8080", true), ("[fe80::1]", true), ("100.64.0.1", true), ("198.51.100.7:8080", true),
        ("[::ffff:198.51.100.7]:8080", true), ("live.example.com", true), ("LIVE.example.com:8080", true), ("rtmp.example.com", true),
        ("more.example.com:99", true), ("203.0.113.77", true),
        ("evil.example", false), ("evil.example:8080", false), ("127.0.0.1.evil.example", false), ("localhost.evil.example", false),
        ("xlocalhost", false), ("live.example.com.evil.example", false), ("evil-live.example.com", false), ("203.0.113.9", false),
        ("172.32.0.1", false), ("127.1", false), ("2130706433", false), ("0x7f.1", false), ("", false), ("a b", false), (":8080", false),
        ("127.0.0.1:8080, evil.example", false), ("[::1", false), ("::1", false), ("live.example.com@evil.example", false),
    ]) func hosts(_ host: String, _ isKnown: Bool) throws {
        let rules = Self.rules {
            $0.urls.http = "https://live.example.com:8443/base"
            $0.urls.rtmp = "rtmp://rtmp.example.com"
            $0.http.hosts = ["more.example.com", "203.0.113.77"]
        }
        if isKnown {
            #expect(try Self.ask(rules, host: host, local: "198.51.100.7")["cross-origin-resource-policy"] == "same-site")
        } else {
            let error = #expect(throws: APIError.self) { try Self.ask(rules, host: host, local: "198.51.100.7") }
            #expect(error?.status.code == 403 && error?.message.contains("http.hosts") == true, "\(error?.message ?? "")")
        }
        // `http.hosts: [any]` accepts every host.
        _ = try Self.ask(Self.rules { $0.http.hosts = ["any"] }, host: host)
    }

    @Test func withoutAHostThereIsNoBrowser() throws {
        _ = try Self.ask(Self.rules(), host: nil)
        #expect(throws: APIError.self) { try Self.ask(Self.rules(), host: nil, origin: "http://127.0.0.1:8080") }
        let two = PageRequest(origins: [], fetchSite: nil, hosts: ["127.0.0.1", "evil.example"])
        #expect(throws: APIError.self) { try Self.rules().check(two, nil) }
    }

    /// Origin and Sec-Fetch-Site; allowed by default; allowed if `http.allowOrigin` names good.example.
    @Test(
        arguments: [
            (nil, nil, true, true), (nil, "none", true, true), (nil, "same-origin", true, true), (nil, "same-site", true, true),
            (nil, "cross-site", false, false), (nil, "Cross-Site", false, false), ("http://127.0.0.1:8080", nil, true, true),
            ("http://127.0.0.1:8080", "same-origin", true, true), ("HTTPS://127.0.0.1:8080", nil, true, true),
            ("http://127.0.0.1", nil, false, false), ("http://127.0.0.1:3000", "same-site", false, false),
            ("https://live.example.com", "cross-site", false, false), ("https://live.example.com", "same-site", true, true),
            ("https://good.example", "cross-site", false, true), ("https://good.example", nil, false, true),
            ("https://good.example.evil.example", nil, false, false), ("http://good.example", nil, false, false),
            ("https://evil.example", "cross-site", false, false), ("https://evil.example", "same-origin", false, false),
            ("null", nil, false, false), ("", nil, false, false), ("*", nil, false, false),
        ] as [(String?, String?, Bool, Bool)]) func pages(_ origin: String?, _ site: String?, _ byDefault: Bool, _ whereNamed: Bool) throws
    {
        for (allowed, isLetIn) in [("*", byDefault), ("", byDefault), ("https://good.example", whereNamed)] {
            let rules = Self.rules {
                $0.http.allowOrigin = allowed.isEmpty ? [] : ["https://more.example", allowed]
                $0.urls.http = "https://live.example.com/"
            }
            guard isLetIn else {
                let error = #expect(throws: APIError.self) { try Self.ask(rules, origin: origin, site: site) }
                #expect(error?.status.code == 403 && error?.message.contains("http.allowOrigin") == true)
                // Where all pages may play with a credential, all may read why they are refused without.
                #expect(error?.headers[.accessControlAllowOrigin] == (allowed == "*" ? "*" : nil))
                continue
            }
            let headers = try Self.ask(rules, origin: origin, site: site)
            // Never "*", and the named origin only for its own requests.
            #expect(headers["access-control-allow-origin"] == (origin == "https://good.example" ? origin : nil))
        }
    }

    @Test func aCredentialIsAsBefore() throws {
        let evil = PageRequest(origins: ["https://evil.example"], fetchSite: "cross-site", hosts: ["evil.example"])
        let good = VerifiedCaller(AdmissionPass(identity: "user a", user: "a", isVerified: true, parameters: ""), shown: true)
        let any = try Self.rules().check(evil, good)
        #expect(any.map(\.1) == ["*"])
        #expect(try Self.rules { $0.http.allowOrigin = [] }.check(evil, good).isEmpty)
    }

    /// Several origins, and others after a reload.
    @Test func originsChange() throws {
        let config = Live(ServerConfig())
        config.update { $0.http.allowOrigin = ["https://one.example", "https://two.example:8443"] }
        let rules = PageRules(config)
        for origin in ["https://one.example", "https://TWO.example:8443"] {
            let page = PageRequest(origins: [origin], fetchSite: nil, hosts: ["evil.example"])
            let error = #expect(throws: APIError.self) { try rules.check(page, nil) }
            #expect(error?.headers[.accessControlAllowOrigin] == origin.lowercased() && rules.letsSocket(page), "a strange host's page")
            #expect(try Self.ask(rules, origin: origin)["access-control-allow-origin"] == origin.lowercased())
        }
        let three = PageRequest(origins: ["https://three.example"], fetchSite: nil, hosts: ["127.0.0.1"])
        #expect(!rules.letsSocket(three) && rules.withCredential(three).isEmpty)
        config.update { $0.http.allowOrigin = ["https://three.example"] }
        #expect(rules.letsSocket(three) && rules.withCredential(three).map(\.1) == ["https://three.example"])
        #expect(throws: APIError.self) { try Self.ask(rules, origin: "https://one.example") }
    }

    /// A credential counts once it is verified, and an address or a hook that was shown nothing verifies none.
    @Test(arguments: [(true, true, true), (true, false, false), (false, true, false), (false, false, false)])
    func whatCounts(_ isVerified: Bool, _ isShown: Bool, _ isLetIn: Bool) {
        let evil = PageRequest(origins: ["https://evil.example"], fetchSite: "cross-site", hosts: ["127.0.0.1"])
        let caller = VerifiedCaller(
            AdmissionPass(identity: "address 127.0.0.1", user: nil, isVerified: isVerified, parameters: ""), shown: isShown)
        #expect((caller != nil) == isLetIn)
        #expect(((try? Self.rules().check(evil, caller)) != nil) == isLetIn)
    }
}
