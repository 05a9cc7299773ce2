import LibC
import NIOCore
import NIOPosix
import Support
import TestSupport
import Testing

@testable import Sockets

/// Datagrams through the kernel, and those that it cuts from one write.
@Suite struct DatagramTests {
    /// A bound socket of a family on loopback, with its address.
    private struct Port: ~Copyable {
        let descriptor: CInt
        let address: DatagramAddress

        init(isIPv6: Bool) throws {
            self.descriptor = socket(isIPv6 ? AF_INET6 : AF_INET, CInt(2), 0)
            #expect(self.descriptor >= 0)
            if isIPv6 {
                var address = sockaddr_in6()
                address.sin6_family = sa_family_t(AF_INET6)
                address.sin6_addr = in6addr_loopback
                var length = socklen_t(MemoryLayout<sockaddr_in6>.size)
                let descriptor = self.descriptor
                withUnsafeMutablePointer(to: &address) {
                    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                        _ = bind(descriptor, $0, length)
                        _ = getsockname(descriptor, $0, &length)
                    }
                }
                self.address = DatagramAddress(high: 0, low: 1, port: UInt16(bigEndian: address.sin6_port))
            } else {
                var address = sockaddr_in()
                address.sin_family = sa_family_t(AF_INET)
                address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
                var length = socklen_t(MemoryLayout<sockaddr_in>.size)
                let descriptor = self.descriptor
                withUnsafeMutablePointer(to: &address) {
                    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                        _ = bind(descriptor, $0, length)
                        _ = getsockname(descriptor, $0, &length)
                    }
                }
                self.address = DatagramAddress(ipv4: 0x7F00_0001, port: UInt16(bigEndian: address.sin_port))
            }
        }

        deinit { close(self.descriptor) }

        /// The sizes of the datagrams that have come, with the first byte of each.
        func popAll() -> [(size: Int, first: UInt8)] {
            var all: [(Int, UInt8)] = []
            var buffer = [UInt8](repeating: 0, count: 64 << 10)
            while true {
                let count = recv(self.descriptor, &buffer, buffer.count, CInt(MSG_DONTWAIT))
                guard count > 0 else { return all }
                all.append((count, buffer[0]))
            }
        }
    }

    @Test(arguments: [false, true]) func runsAreCut(_ isIPv6: Bool) throws {
        let from = try Port(isIPv6: isIPv6)
        let to = try Port(isIPv6: isIPv6)
        let sender = try DatagramSender(copying: from.descriptor, isIPv6: isIPv6)
        let run = DatagramRun()
        run.begin(sender, to: to.address)
        // Equal ones, then a shorter one ends the run; a longer one begins another.
        for (number, size) in [1_000, 1_000, 1_000, 400, 400, 1_100, 7].enumerated() {
            let space = run.reserve(1_200)
            for offset in 0..<size { space[offset] = UInt8(number) }
            run.commit(size)
        }
        run.flush()
        #expect(run.popLost() == 0)
        let got = to.popAll()
        #expect(got.map(\.size) == [1_000, 1_000, 1_000, 400, 400, 1_100, 7] && got.map(\.first) == Array(0..<7))
    }

    /// From the address that is named, of one family and of the other in its mapped form; the kernel would take another.
    @Test(arguments: [false, true]) func theSourceIsNamed(_ isIPv6: Bool) async throws {
        let group = MultiThreadedEventLoopGroup.singleton
        let seen = LockedList<SocketAddress>()
        let to = try await DatagramBootstrap(group: group).channelInitializer { $0.pipeline.addHandler(Sources(seen)) }
            .bind(host: "127.0.0.1", port: 0).get()
        let from = try await DatagramBootstrap(group: group).bind(host: isIPv6 ? "::" : "0.0.0.0", port: 0).get()
        let sender = try #require(
            try await from.eventLoop.submit {
                try from.pipeline.syncOperations.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) {
                    try DatagramSender(copying: $0, isIPv6: isIPv6)
                }
            }.get())
        let bound = try #require(to.localAddress)
        let target = try #require(DatagramAddress(bound))
        for last in [UInt32(2), 1, 3] {
            let local = DatagramAddress(ipv4: 0x7F00_0000 | last, port: 0)
            let bytes = [UInt8](repeating: 1, count: 250)
            // Alone, and as a run that the kernel cuts.
            #expect(bytes.withUnsafeBytes { sender.send($0, to: target, from: local) } == .sent)
            #expect(bytes.withUnsafeBytes { sender.sendRun($0, segment: 100, to: target, from: local) } == .sent)
        }
        try await eventually("twelve datagrams") { seen.all.count == 12 }
        #expect(seen.all.map(\.ipAddress) == [2, 1, 3].flatMap { Array(repeating: "127.0.0.\($0)", count: 4) })
        try await to.close()
        try await from.close()
    }

    private final class Sources: ChannelInboundHandler, Sendable {
        typealias InboundIn = AddressedEnvelope<ByteBuffer>
        private let seen: LockedList<SocketAddress>

        init(_ seen: LockedList<SocketAddress>) { self.seen = seen }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) { self.seen.append(self.unwrapInboundIn(data).remoteAddress) }
    }

    /// More than the kernel takes at once, all the same; nothing is sent twice.
    @Test func longRuns() throws {
        let from = try Port(isIPv6: false)
        let to = try Port(isIPv6: false)
        let sender = try DatagramSender(copying: from.descriptor, isIPv6: false)
        let run = DatagramRun()
        run.begin(sender, to: to.address)
        var got = 0
        for _ in 0..<200 {
            let space = run.reserve(1_200)
            space[0] = 1
            run.commit(1_200)
            got += to.popAll().count
        }
        run.flush()
        got += to.popAll().count
        #expect(got == 200)
        #expect(run.reserve(3_000).isEmpty, "no datagram is so long")
    }

    @Test func whatCannotBeSentIsCounted() throws {
        let from = try Port(isIPv6: false)
        let sender = try DatagramSender(copying: from.descriptor, isIPv6: false)
        let far = DatagramAddress(high: 0x2001_0DB8_0000_0000, low: 1, port: 9)
        #expect([1, 2].withUnsafeBytes { sender.send($0, to: far) } == .failed(EAFNOSUPPORT))
    }

    @Test func addresses() throws {
        let v4 = try #require(DatagramAddress(SocketAddress(ipAddress: "192.0.2.1", port: 80)))
        #expect(v4.isIPv4 && v4.bytes == [192, 0, 2, 1] && v4.port == 80)
        // A socket of IPv6 names IPv4's clients so.
        #expect(try DatagramAddress(SocketAddress(ipAddress: "::ffff:192.0.2.1", port: 80)) == v4)
        let v6 = try #require(DatagramAddress(SocketAddress(ipAddress: "2001:db8::7", port: 80)))
        #expect(!v6.isIPv4 && v6.bytes == [0x20, 1, 0x0D, 0xB8] + [UInt8](repeating: 0, count: 11) + [7])
    }
}
