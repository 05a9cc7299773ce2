import LibC
import NIOCore
import Support
import Testing

@testable import Listening

/// Listening sockets from outside, with real descriptors.
@Suite struct InheritedSocketsTests {
    /// A socket bound to a free port of this address; it listens unless `listens` is false, or it is one of UDP.
    private static func open(
        _ host: String = "127.0.0.1", listens: Bool = true, isDatagram: Bool = false
    ) throws -> (descriptor: CInt, port: Int) {
        let descriptor = socket(AF_INET, isDatagram ? datagramSocket : streamSocket, 0)
        let isBound = try SocketAddress(ipAddress: host, port: 0).withSockAddr { bind(descriptor, $0, socklen_t($1)) == 0 }
        // sockaddr_in: family, then the port in network order.
        var name = [UInt8](repeating: 0, count: 16)
        var size = socklen_t(name.count)
        let isNamed = name.withUnsafeMutableBytes { bytes in
            guard let start = bytes.baseAddress else { return false }
            return getsockname(descriptor, start.assumingMemoryBound(to: sockaddr.self), &size) == 0
        }
        try #require(isBound && isNamed)
        if listens, !isDatagram { try #require(listen(descriptor, 5) == 0) }
        return (descriptor, Int(name[2]) << 8 | Int(name[3]))
    }

    private static func read(_ values: [String: String]) -> InheritedSockets {
        InheritedSockets(environment: { values[$0] }, processID: 7)
    }

    @Test func theSchemesOfAFormerProgram() throws {
        let (rtmp, http) = (try Self.open(), try Self.open())
        defer { for one in [rtmp, http] { close(one.descriptor) } }
        let kept = InheritedSockets.kept([("rtmp", rtmp.descriptor), ("http", http.descriptor)], processID: 7)
        var inherited = Self.read(kept)
        #expect(inherited.sockets.map(\.descriptor) == [rtmp.descriptor, http.descriptor] && inherited.problems.isEmpty)
        // A port that the system chose stays the scheme's.
        #expect(inherited.remove("http", HostPort(host: "127.0.0.1", port: 0))?.descriptor == http.descriptor)
        #expect(inherited.remove("http", HostPort(host: "127.0.0.1", port: 0)) == nil)
        #expect(inherited.remove("https", HostPort(host: "127.0.0.1", port: 0)) == nil)
        #expect(inherited.remove("rtmp", HostPort(host: "localhost", port: rtmp.port))?.descriptor == rtmp.descriptor)
        #expect(fcntl(rtmp.descriptor, F_GETFD) & FD_CLOEXEC != 0, "children do not get it")
        // For another process they are not meant.
        #expect(InheritedSockets(environment: { kept[$0] }, processID: 8).sockets.isEmpty)
    }

    /// Open to one address is not open to all, nor all of IPv4 to all of IPv6.
    @Test func addressesMustAgree() throws {
        let (one, all) = (try Self.open(), try Self.open("0.0.0.0"))
        defer { for each in [one, all] { close(each.descriptor) } }
        var inherited = Self.read(InheritedSockets.kept([("a", one.descriptor), ("b", all.descriptor)], processID: 7))
        #expect(inherited.remove("rtmp", HostPort(host: "0.0.0.0", port: one.port)) == nil)
        #expect(inherited.remove("rtmp", HostPort(host: "127.0.0.1", port: all.port)) == nil)
        #expect(inherited.remove("rtmp", HostPort(host: "127.0.0.1", port: one.port + 1)) == nil)
        #expect(inherited.remove("rtmp", HostPort(host: "::", port: all.port)) == nil)
        #expect(inherited.remove("rtmp", HostPort(host: "127.0.0.1", port: one.port))?.descriptor == one.descriptor)
        // It keeps a new socket of its port from being opened.
        #expect(inherited.removeOthers(of: 0).isEmpty && inherited.removeOthers(of: one.port).isEmpty)
        #expect(inherited.removeOthers(of: all.port).map(\.descriptor) == [all.descriptor])
        #expect(inherited.sockets.isEmpty)
    }

    /// A port of UDP is none of TCP, though the numbers agree.
    @Test func portsOfUDP() throws {
        let (udp, tcp) = (try Self.open(isDatagram: true), try Self.open())
        defer { for each in [udp, tcp] { close(each.descriptor) } }
        var inherited = Self.read(InheritedSockets.kept([("webrtc", udp.descriptor), ("webrtc", tcp.descriptor)], processID: 7))
        #expect(inherited.problems.isEmpty && inherited.sockets.map(\.isDatagram) == [true, false])
        #expect(inherited.remove("webrtc", HostPort(host: "127.0.0.1", port: udp.port)) == nil)
        #expect(inherited.remove("webrtc", HostPort(host: "127.0.0.1", port: tcp.port), isDatagram: true) == nil)
        #expect(inherited.removeOthers(of: udp.port).isEmpty)
        #expect(inherited.remove("webrtc", HostPort(host: "127.0.0.1", port: 0), isDatagram: true)?.descriptor == udp.descriptor)
        #expect(inherited.remove("webrtc", HostPort(host: "127.0.0.1", port: 0))?.descriptor == tcp.descriptor)
    }

    /// Descriptors that are no listening sockets are named, and closed.
    @Test func whatIsNone() throws {
        let bound = try Self.open(listens: false)
        var ends: [CInt] = [-1, -1]
        #expect(pipe(&ends) == 0)
        defer { close(ends[1]) }
        let file = ends[0]
        let before = [bound.descriptor, file].map(Self.identity)
        let inherited = Self.read(["LISTEN_KEPT": "7:a=\(bound.descriptor),b=\(file),c=99999"])
        #expect(inherited.sockets.isEmpty && inherited.problems.count == 3, "\(inherited.problems)")
        #expect(inherited.problems[0].contains("ListenStream=") && inherited.problems[2] == "not open: 99999", "\(inherited.problems)")
        // Other tests may have opened something under the same numbers.
        let after = [bound.descriptor, file].map(Self.identity)
        #expect(zip(before, after).allSatisfy { $0 != nil && $0 != $1 })
    }

    /// The inode that the descriptor stands for; nil if it is closed.
    private static func identity(_ descriptor: CInt) -> UInt64? {
        var status = stat()
        return fstat(descriptor, &status) == 0 ? UInt64(status.st_ino) : nil
    }

    @Test(arguments: [
        [:], ["LISTEN_KEPT": ""], ["LISTEN_KEPT": "7:"], ["LISTEN_KEPT": "7"], ["LISTEN_KEPT": "7:a"], ["LISTEN_KEPT": "7:a=b,=3,c="],
        ["LISTEN_KEPT": "7:a=-1,b=0,c=2"], ["LISTEN_FDS": "2"], ["LISTEN_FDS": "2", "LISTEN_PID": "8"],
        ["LISTEN_FDS": "x", "LISTEN_PID": "7"],
        ["LISTEN_FDS": "-5", "LISTEN_PID": "7"],
    ])
    func nothingToTake(_ values: [String: String]) {
        let inherited = Self.read(values)
        #expect(inherited.sockets.isEmpty && inherited.problems.isEmpty, "\(inherited.problems)")
    }
}
