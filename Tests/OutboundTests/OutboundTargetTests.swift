import Support
import TestSupport
import Testing

@testable import Outbound

@Suite struct OutboundTargetTests {
    /// Private and special addresses, to which the server must not connect.
    @Test(arguments: [
        "0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.100.100.200", "100.127.255.255", "127.0.0.1",
        "127.255.255.254",
        "169.254.0.1", "169.254.169.254", "169.254.170.2", "172.16.0.1", "172.31.255.255", "192.0.0.192", "192.0.2.1", "192.88.99.1",
        "192.168.0.1", "192.168.255.255", "198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255",
        "240.0.0.1", "255.255.255.255", "168.63.129.16",
        "::", "::1", "fe80::1", "febf::1", "fec0::1", "fc00::1", "fd00::1", "fd00:ec2::254", "fd20:ce::254", "ff02::1", "100::1",
        "2001::1", "2001:10::1", "2001:20::1", "2001:db8::1", "3fff::1", "5f00::1", "64:ff9b:1::1",
        // Embedded IPv4: mapped, compatible, translated, NAT64, 6to4.
        "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::127.0.0.1", "::10.0.0.1", "::ffff:0:127.0.0.1",
        "::ffff:0:169.254.169.254", "64:ff9b::127.0.0.1", "64:ff9b::10.0.0.1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::", "2002:a00:1::1",
        "2002:a9fe:a9fe::", "2002:c0a8:101::", "2002:6464:64c8::",
        // ISATAP, with and without the bit for unique addresses.
        "2600:1:2:3:0:5efe:10.0.0.1", "2600:1:2:3:200:5efe:127.0.0.1", "2600:1:2:3:0:5efe:a9fe:a9fe",
    ])
    func closed(_ text: String) throws {
        let address = try (IPText.v4(text) ?? IPText.v6(text)).orThrow()
        let why = TargetRules(allowPrivate: []).objection(to: address)
        #expect(why != nil, "\(text)")
    }

    @Test(arguments: [
        "1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.1",
        "169.253.255.255",
        "169.255.0.0", "172.15.255.255", "172.32.0.0", "192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0", "223.255.255.255",
        "168.63.129.15", "2606:4700:4700::1111", "2a00:1450:4001::1", "2001:200::1", "2001:4860:4860::8888", "2003::1", "2400::1",
        "::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "2002:808:808::1", "2600:1:2:3:0:5efe:8.8.8.8", "2600:1:2:3:100:5efe:10.0.0.1",
    ])
    func open(_ text: String) throws {
        let address = try (IPText.v4(text) ?? IPText.v6(text)).orThrow()
        #expect(TargetRules(allowPrivate: []).objection(to: address) == nil, "\(text)")
    }

    @Test func privateNetworksCanBeAllowedOneByOne() throws {
        func isOpen(_ text: String, _ allowed: [String]) throws -> Bool {
            let address = try (IPText.v4(text) ?? IPText.v6(text)).orThrow()
            return TargetRules(allowPrivate: try allowed.map { try CIDR(parsing: $0) }).objection(to: address) == nil
        }
        #expect(try isOpen("10.1.2.3", ["10.0.0.0/8"]))
        #expect(try isOpen("::ffff:10.1.2.3", ["10.0.0.0/8"]))
        #expect(try !isOpen("10.1.2.3", ["10.2.0.0/16"]))
        #expect(try !isOpen("127.0.0.1", ["10.0.0.0/8"]))
        #expect(try !isOpen("::1", ["127.0.0.0/8"]))
        #expect(try isOpen("::1", ["::1/128"]))
        #expect(try isOpen("fd00::5", ["fd00::/8"]))
        // An address behind a translator is not in the allowed network.
        #expect(try !isOpen("64:ff9b::10.1.2.3", ["10.0.0.0/8"]))
        #expect(try !isOpen("2002:a01:203::", ["10.0.0.0/8"]))
        // Allowed networks are added; public addresses stay open.
        #expect(try isOpen("8.8.8.8", ["10.0.0.0/8"]))
    }

    @Test func addressesOfOtherLengthsAreNone() {
        for count in [0, 1, 3, 5, 15, 17] {
            #expect(TargetRules(allowPrivate: CIDR.any).objection(to: [UInt8](repeating: 8, count: count)) != nil)
        }
    }

    @Test(arguments: [
        ("http://example.com", "http://example.com/"), ("HTTP://EXAMPLE.com/Path?Q=1", "http://example.com/Path?Q=1"),
        ("https://example.com:443/x", "https://example.com/x"), ("http://example.com:443/x", "http://example.com:443/x"),
        ("https://example.com?x=1", "https://example.com/?x=1"), ("http://example.com/a#b", "http://example.com/a"),
        ("http://example.com#b", "http://example.com/"), ("http://1.2.3.4:8080/", "http://1.2.3.4:8080/"),
        ("http://[2001:DB8::1]:81/x", "http://[2001:db8::1]:81/x"), ("http://a_b.example/", "http://a_b.example/"),
        ("http://localhost/", "http://localhost/"), ("http://xn--bcher-kva.example/", "http://xn--bcher-kva.example/"),
        ("http://example.com//evil.example/", "http://example.com//evil.example/"),
        ("http://example.com/@evil", "http://example.com/@evil"),
    ])
    func readURLs(_ text: String, _ expected: String) throws {
        #expect(try OutboundURL(parsing: text).text == expected)
    }

    @Test(arguments: [
        "", "example.com", "//example.com", "ftp://example.com", "file:///etc/passwd", "gopher://example.com", "http+unix://x/", "unix:/x",
        "javascript:alert(1)", "data:text/plain,x", "http:example.com", "http:/example.com", "http://", "http:///x", "http://?x",
        "http://#x",
        "http://:80/", "http://user@example.com/", "http://user:pass@example.com/", "http://example.com@127.0.0.1/", "http://@example.com/",
        "http://example.com\\@127.0.0.1/", "http://127.0.0.1\\.example.com/", "http://exa mple.com/", "http://example.com/\r\nHost: x",
        "http://example.com/\u{0}", "http://example.com/ü", "http://bücher.example/", "http://example.com:0/", "http://example.com:65536/",
        "http://example.com:/", "http://example.com:+80/", "http://example.com:8 0/", "http://example.com:80:90/", "http://example.com:x/",
        "http://127.1/", "http://2130706433/", "http://0x7f000001/", "http://0x7f.1/", "http://0177.0.0.1/", "http://127.0.0.1./",
        "http://1.2.3.4.5/", "http://256.1.1.1/", "http://example.com./", "http://.example.com/", "http://exa..mple/", "http://-a.example/",
        "http://[::1/", "http://[::1]x/", "http://[]/", "http://[1.2.3.4]/", "http://[fe80::1%25eth0]/", "http://[::g]/", "http://::1/",
        "http://exam%70le.com/", "http://①②⑦.⓪.⓪.①/", "http://a,b/", "http://" + String(repeating: "a", count: 64) + ".example/",
        "http://example.com/" + String(repeating: "a", count: 2_048),
    ])
    func refusedURLs(_ text: String) {
        let error = #expect(throws: OutboundError.self) { try OutboundURL(parsing: text) }
        if case .badURL = error { return }
        Issue.record("\(text): \(String(describing: error))")
    }
}
