import NIOCore
import Testing

@testable import Support

@Suite struct HostKeyTests {
    private func key(_ address: String) throws -> HostKey { HostKey.of(try SocketAddress(ipAddress: address, port: 1)) }

    /// A listener for IPv4 and IPv6 shows IPv4 clients by mapped addresses: each is a host of its own, the same as on a listener for IPv4.
    @Test func mappedAddressesAreTheirOwnHosts() throws {
        #expect(try self.key("::ffff:10.0.0.7") == self.key("10.0.0.7"))
        #expect(try self.key("::ffff:10.0.0.8") != self.key("::ffff:10.0.0.7"))
    }

    @Test func anIPv6HostIsItsNetwork() throws {
        #expect(try self.key("2001:db8:1:2::3") == self.key("2001:db8:1:2:ffff::9"))
        #expect(try self.key("2001:db8:1:2::3") != self.key("2001:db8:1:3::3"))
        #expect(try self.key("::1") != self.key("::ffff:0.0.0.1"))
        #expect(try self.key("::1") != self.key("0.0.0.1"))
    }

    @Test func hostsHaveWords() throws {
        #expect(try "\(self.key("::ffff:10.0.0.7"))" == "10.0.0.7")
        #expect(try "\(self.key("2001:db8:1:2::3"))" == "2001:db8:1:2::/64")
        #expect("\(HostKey.of(nil))" == "unknown" && HostKey.of(nil) == HostKey.of(nil))
        let local = try SocketAddress(unixDomainSocketPath: "/tmp/x")
        #expect("\(HostKey.of(local))" == "unix")
    }
}
