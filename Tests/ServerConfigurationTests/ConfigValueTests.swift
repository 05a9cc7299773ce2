import NIOCore
import ServerConfiguration
import Support
import Testing

@Suite struct ConfigValueTests {
    @Test(arguments: [
        ("30s", 30_000), ("500ms", 500), ("2m", 120_000), ("12h", 43_200_000), ("5", 5_000), ("0.5", 500), ("1.25s", 1_250),
        ("0s", 0), ("0", 0), ("1.5m", 90_000), ("10 s", 10_000), ("0.001", 1),
        ("7d", 604_800_000), ("1h30m", 5_400_000), ("1d2h3m4s5ms", 93_784_005),
    ])
    func durations(text: String, ms: Int64) {
        #expect(ConfigUnits.milliseconds(text) == ms)
        #expect(ConfigUnits.milliseconds(ConfigUnits.duration(milliseconds: ms)) == ms)
    }

    @Test(arguments: [
        "", "abc", "s", "-5s", "+5s", "5 seconds", "5S", "1e3", ".5s", "5.s", "1.2.3s", "0.0001s", "1.5ms", "99999999999999999999",
        "9999999999999999h", "٣s", "5s5", "0x10", "5s1m", "5m5m", "1.5h30m", "99999999999d99999999999d",
    ])
    func notDurations(text: String) { #expect(ConfigUnits.milliseconds(text) == nil) }

    @Test(arguments: [
        ("8MiB", 8 << 20), ("64KiB", 64 << 10), ("8mib", 8 << 20), ("1GiB", 1 << 30), ("1024", 1_024), ("512B", 512), ("2MB", 2_000_000),
        ("3kB", 3_000), ("0", 0), ("1.5KiB", 1_536), ("16 MiB", 16 << 20),
    ])
    func sizes(text: String, bytes: Int) {
        #expect(ConfigUnits.bytes(text) == bytes)
        #expect(ConfigUnits.bytes(ConfigUnits.size(bytes: bytes)) == bytes)
    }

    @Test(arguments: ["", "8M", "8Ki", "MiB", "-1", "0.5B", "8 M iB", "9999999999GiB", "1_000"])
    func notSizes(text: String) { #expect(ConfigUnits.bytes(text) == nil) }

    // MARK: - Addresses

    @Test(arguments: [
        ("127.0.0.1:1935", "127.0.0.1", 1935), ("0.0.0.0:0", "0.0.0.0", 0), ("[::1]:1935", "::1", 1935), ("[::]:65535", "::", 65535),
        ("localhost:80", "localhost", 80), ("relay-1.example.com:1935", "relay-1.example.com", 1935),
        ("[fe80::1%eth0]:1", "fe80::1%eth0", 1),
    ])
    func addresses(text: String, host: String, port: Int) throws {
        let address = try HostPort(parsing: text)
        #expect(address == HostPort(host: host, port: port))
        #expect(address.description == text)
    }

    @Test(arguments: [
        "", ":", "1935", ":1935", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1:+1",
        "127.0.0.1:000080", "300.0.0.1:80", "127.1:80", "::1:80", "[::1]", "[::1]80", "[]:80", "[127.0.0.1]:80", "[::1%]:80", "a b:80",
        "a..b:80", "-a:80", "host\u{0}:80", "http://host:80", "ho/st:80", "host:٨٠",
    ])
    func notAddresses(text: String) {
        #expect(throws: ValueProblem.self) { try HostPort(parsing: text) }
    }

    @Test(arguments: [
        ("127.0.0.1:80", "127.0.0.1:80", true), ("127.0.0.1:80", "127.0.0.1:81", false), ("127.0.0.1:80", "127.0.0.2:80", false),
        ("0.0.0.0:80", "127.0.0.1:80", true), ("[::]:80", "127.0.0.1:80", true), ("[::1]:80", "[0:0::1]:80", true),
        ("localhost:80", "[::1]:80", true), ("LOCALHOST:80", "127.0.0.1:80", true), ("127.0.0.1:0", "127.0.0.1:0", false),
        ("a.example:80", "A.example:80", true), ("a.example:80", "b.example:80", false),
    ])
    func clashes(one: String, other: String, expected: Bool) throws {
        let (one, other) = (try HostPort(parsing: one), try HostPort(parsing: other))
        #expect(one.clashes(with: other) == expected)
        #expect(other.clashes(with: one) == expected)
    }

    // MARK: - Networks

    @Test(arguments: [
        ("10.0.0.0/8", ["10.0.0.1", "10.255.255.255", "::ffff:10.1.2.3"], ["11.0.0.0", "9.255.255.255", "::ffff:11.0.0.1", "::1"]),
        ("192.168.1.7", ["192.168.1.7"], ["192.168.1.6", "192.168.1.8"]),
        ("192.168.4.0/22", ["192.168.4.0", "192.168.7.255"], ["192.168.3.255", "192.168.8.0"]),
        ("10.0.0.0/31", ["10.0.0.0", "10.0.0.1"], ["10.0.0.2"]),
        ("0.0.0.0/0", ["1.2.3.4", "255.255.255.255", "::ffff:1.2.3.4"], ["::1", "2001:db8::1"]),
        ("::/0", ["::", "2001:db8::1"], ["1.2.3.4", "::ffff:1.2.3.4"]),
        ("::1/128", ["::1"], ["::2", "127.0.0.1"]),
        ("::1", ["::1"], ["::"]),
        ("fd00::/8", ["fd12::1"], ["fc00::1", "fe80::1"]),
        ("2001:db8:0:8000::/49", ["2001:db8:0:8000::1", "2001:db8:0:ffff::"], ["2001:db8:0:7fff::1", "2001:db8:1::"]),
        ("::ffff:10.0.0.0/104", ["10.9.9.9", "::ffff:10.9.9.9"], ["11.0.0.0"]),
    ])
    func networks(text: String, inside: [String], outside: [String]) throws {
        let network = try CIDR(parsing: text)
        for address in inside { #expect(network.contains(try Self.bytes(address)), "\(address) in \(text)") }
        for address in outside { #expect(!network.contains(try Self.bytes(address)), "\(address) not in \(text)") }
        #expect(!network.contains([]) && !network.contains([10, 0, 0]))
        #expect(try CIDR(parsing: network.description) == network)
    }

    @Test(arguments: [
        "", "/", "/8", "any", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/+8", "10.0.0.0/8/8", "10.0.0/8", "10.0.0.1/8", "::/129",
        "::1/64", "host/8", "10.0.0.0 /8", "10.0.0.0/0008", "1.2.3.4\u{0}/32",
    ])
    func notNetworks(text: String) {
        #expect(throws: ValueProblem.self) { try CIDR(parsing: text) }
    }

    @Test func bitsBeyondThePrefixSayWhatToWrite() {
        #expect(throws: ValueProblem("\"10.1.2.3/8\" has bits beyond its prefix; write 10.0.0.0/8 or 10.1.2.3/32")) {
            try CIDR(parsing: "10.1.2.3/8")
        }
    }

    @Test func socketAddresses() throws {
        #expect(CIDR.loopback.contains(address: try SocketAddress(ipAddress: "127.8.9.1", port: 1)))
        #expect(CIDR.loopback.contains(address: try SocketAddress(ipAddress: "::1", port: 1)))
        #expect(CIDR.loopback.contains(address: try SocketAddress(ipAddress: "::ffff:127.0.0.1", port: 1)))
        #expect(!CIDR.loopback.contains(address: try SocketAddress(ipAddress: "10.0.0.1", port: 1)))
        #expect(!CIDR.loopback.contains(address: try SocketAddress(ipAddress: "::2", port: 1)))
        #expect(!CIDR.any.contains(address: try SocketAddress(unixDomainSocketPath: "/run/x")))
        #expect(CIDR.any.contains(address: try SocketAddress(ipAddress: "2001:db8::1", port: 1)))
    }

    private static func bytes(_ text: String) throws -> [UInt8] {
        try #require(IPText.v4(text) ?? IPText.v6(text))
    }
}
