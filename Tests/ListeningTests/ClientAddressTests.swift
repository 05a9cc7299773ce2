import Foundation
import Listening
import Logging
import NIOCore
import Support
import Testing

@testable import ServerConfiguration

/// The client's address of an HTTP request behind proxies.
@Suite struct ClientAddressTests {
    static let table: [(peer: String, forwarded: [String], client: String?)] = [
        ("10.0.0.1", [], "10.0.0.1"),
        ("10.0.0.1", ["203.0.113.9"], "203.0.113.9"),
        // Entries further left were written by the client.
        ("10.0.0.1", ["127.0.0.1, 203.0.113.9"], "203.0.113.9"),
        ("10.0.0.1", ["127.0.0.1", " 203.0.113.9\t"], "203.0.113.9"),
        // Proxy behind proxy.
        ("10.0.0.1", ["198.51.100.1,203.0.113.9, 10.0.0.2"], "203.0.113.9"),
        ("10.0.0.1", ["10.0.0.3"], "10.0.0.3"),
        ("10.0.0.1", ["2001:db8::7"], "2001:db8::7"), ("10.0.0.1", ["[2001:db8::7]:81"], "2001:db8::7"),
        ("10.0.0.1", ["203.0.113.9:4711"], "203.0.113.9"),
        ("::ffff:10.0.0.1", ["203.0.113.9"], "203.0.113.9"),
        // A trusted proxy with a senseless header.
        ("10.0.0.1", ["unknown"], nil), ("10.0.0.1", ["203.0.113.9, "], nil), ("10.0.0.1", [""], nil), ("10.0.0.1", ["1.2.3"], nil),
        ("10.0.0.1", [String(repeating: "9", count: 9_000)], nil),
        // A forwarded address is never local, in whatever form, and neither is a proxy's own.
        ("10.0.0.1", ["127.0.0.1"], nil), ("10.0.0.1", ["127.9.9.9:80"], nil), ("10.0.0.1", ["::1"], nil), ("10.0.0.1", ["[::1]:443"], nil),
        ("10.0.0.1", ["::ffff:127.0.0.1"], nil), ("10.0.0.1", ["0:0:0:0:0:ffff:7f00:1"], nil), ("10.0.0.1", ["0.0.0.0"], nil),
        ("10.0.0.1", ["::"], nil), ("10.0.0.1", ["127.0.0.1, 10.0.0.2"], nil), ("10.0.0.1", ["203.0.113.9, 127.0.0.1"], nil),
        // A header from an untrusted peer.
        ("203.0.113.5", ["127.0.0.1"], "203.0.113.5"), ("127.0.0.1", [], "127.0.0.1"),
        // An untrusted proxy on this machine must not make the world local.
        ("127.0.0.1", ["203.0.113.9"], nil), ("127.0.0.1", ["127.0.0.1"], nil), ("::1", ["203.0.113.9"], nil),
    ]

    @Test(arguments: Self.table) func forwarded(_ peer: String, _ forwarded: [String], _ client: String?) throws {
        let addresses = ClientAddresses(
            trusted: [try CIDR(parsing: "10.0.0.0/8")], log: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        let found = addresses.client(peer: try SocketAddress(ipAddress: peer, port: 5_000), forwarded: forwarded)
        #expect(found?.ipAddress == client)
    }
}
