import LibC
import NIOCore
import NIOPosix
import Synchronization
import TestSupport
import Testing

@testable import Sockets

/// A socket as a channel, beside NIO's own: the peer is a plain descriptor, and handlers must see the same of both.
@Suite(.timeLimit(.minutes(2))) struct SocketChannelTests {
    /// Whose channel is tried.
    enum Kind: CaseIterable { case ours, nio }

    /// What a channel's handler saw, and the channel.
    private final class Seen: ChannelInboundHandler, @unchecked Sendable {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer

        private let state = Mutex<(events: [String], bytes: [UInt8])>(([], []))
        private let channel = Mutex<(any Channel)?>(nil)
        /// Runs with each piece, on the loop.
        let whenRead: @Sendable (ChannelHandlerContext) -> Void

        init(_ whenRead: @escaping @Sendable (ChannelHandlerContext) -> Void = { _ in }) { self.whenRead = whenRead }

        var events: [String] { self.state.withLock { $0.events } }
        var bytes: [UInt8] { self.state.withLock { $0.bytes } }
        func open() throws -> any Channel { try self.channel.withLock { $0 }.orThrow() }
        private func note(_ event: String) { self.state.withLock { if $0.events.last != event { $0.events.append(event) } } }

        func channelActive(context: ChannelHandlerContext) {
            self.channel.withLock { $0 = context.channel }
            self.note("active")
        }
        func channelInactive(context: ChannelHandlerContext) { self.note("inactive") }
        func handlerRemoved(context: ChannelHandlerContext) { self.note("removed") }
        func errorCaught(context: ChannelHandlerContext, error: any Error) { self.note("error \((error as? IOError)?.errnoCode ?? -1)") }
        func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
            if let event = event as? ChannelEvent { self.note("\(event)") }
        }
        func channelWritabilityChanged(context: ChannelHandlerContext) { self.note(context.channel.isWritable ? "writable" : "full") }
        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            let bytes = self.unwrapInboundIn(data)
            self.state.withLock { $0.bytes += Array(bytes.readableBytesView) }
            self.note("read")
            self.whenRead(context)
        }
    }

    /// A connection: a channel of this kind here, a descriptor there.
    private struct Connection {
        let channel: any Channel
        let peer: CInt
        let seen: Seen

        static func with(
            _ kind: Kind, halfClosure: Bool = false, _ seen: Seen = Seen(), _ body: (Connection) async throws -> Void
        ) async throws {
            let pair = try Self.pair()
            let loop = try SocketLoop(name: "test")
            defer { loop.end() }
            switch kind {
            case .ours:
                SocketChannel(pair.near, on: loop).start { channel in
                    channel.setOption(.allowRemoteHalfClosure, value: halfClosure).flatMapThrowing {
                        try channel.pipeline.syncOperations.addHandler(seen)
                    }
                }
            case .nio:
                _ = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                    .channelOption(.allowRemoteHalfClosure, value: halfClosure)
                    .channelInitializer { channel in
                        channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(seen) }
                    }
                    .withConnectedSocket(pair.near).get()
            }
            try await eventually("the channel") { (try? seen.open()) != nil }
            let connection = Connection(channel: try seen.open(), peer: pair.far, seen: seen)
            defer { close(pair.far) }
            try await body(connection)
            connection.channel.close(promise: nil)
            try await connection.channel.closeFuture.get()
        }

        /// Two ends of a TCP connection over loopback: `near` for the channel.
        private static func pair() throws -> (near: CInt, far: CInt) {
            let listener = socket(AF_INET, streamSocket, 0)
            defer { close(listener) }
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_addr.s_addr = UInt32(INADDR_LOOPBACK).bigEndian
            var size = socklen_t(MemoryLayout<sockaddr_in>.size)
            let far = socket(AF_INET, streamSocket, 0)
            try withUnsafeMutablePointer(to: &address) { pointer in
                try pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                    try #require(bind(listener, address, size) == 0 && listen(listener, 1) == 0)
                    try #require(getsockname(listener, address, &size) == 0)
                    try #require(connect(far, address, size) == 0)
                }
            }
            return (accept(listener, nil, nil), far)
        }

        func send(_ text: String) { _ = LibC.send(self.peer, text, text.utf8.count, CInt(MSG_NOSIGNAL)) }

        /// Cuts the connection with a reset.
        func reset() {
            var linger = linger(l_onoff: 1, l_linger: 0)
            setsockopt(self.peer, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout.size(ofValue: linger)))
            // The number stays in use until the test's end.
            let other = open("/dev/null", O_RDONLY | O_CLOEXEC)
            dup2(other, self.peer)
            close(other)
        }

        /// All that the channel sent, until it ends or `count` bytes are there.
        func receive(_ count: Int = .max) async throws -> [UInt8] {
            let peer = self.peer
            return await Task.detached {
                var all: [UInt8] = []
                var piece = [UInt8](repeating: 0, count: 64 << 10)
                while all.count < count {
                    let got = recv(peer, &piece, piece.count, 0)
                    guard got > 0 else { break }
                    all += piece[..<got]
                }
                return all
            }.value
        }

        func saw(_ what: String) async throws { try await eventually(what) { self.seen.events.contains(what) } }
    }

    @Test(arguments: Kind.allCases) func bytesGoBothWays(_ kind: Kind) async throws {
        try await Connection.with(kind) { connection in
            connection.send("hello")
            try await eventually("five bytes") { connection.seen.bytes == Array("hello".utf8) }
            try await connection.channel.writeAndFlush(ByteBuffer(string: "there")).get()
            #expect(try await connection.receive(5) == Array("there".utf8))
        }
    }

    /// The peer's last bytes come before its end, though nobody asked for them.
    @Test(arguments: Kind.allCases) func theEndComesBehindTheLastBytes(_ kind: Kind) async throws {
        try await Connection.with(kind) { connection in
            try await connection.channel.setOption(.autoRead, value: false).get()
            connection.send("first")
            connection.send("last")
            shutdown(connection.peer, CInt(SHUT_WR))
            try await connection.saw("inactive")
            #expect(connection.seen.bytes == Array("firstlast".utf8))
            #expect(connection.seen.events.prefix(3) == ["active", "read", "inactive"])
        }
    }

    /// A peer that has ended still gets its answer.
    @Test(arguments: Kind.allCases) func halfClosed(_ kind: Kind) async throws {
        try await Connection.with(kind, halfClosure: true) { connection in
            connection.send("question")
            shutdown(connection.peer, CInt(SHUT_WR))
            try await connection.saw("inputClosed")
            #expect(connection.seen.bytes == Array("question".utf8) && connection.channel.isActive)
            try await connection.channel.writeAndFlush(ByteBuffer(string: "answer")).get()
            try await connection.channel.close(mode: .output).get()
            #expect(try await connection.receive() == Array("answer".utf8))
            try await connection.saw("inactive")
            #expect(connection.seen.events.filter { $0.contains("error") } == [])
        }
    }

    @Test(arguments: Kind.allCases) func aReset(_ kind: Kind) async throws {
        try await Connection.with(kind, halfClosure: true) { connection in
            connection.reset()
            try await connection.saw("removed")
            #expect(connection.seen.events == ["active", "error \(ECONNRESET)", "inactive", "removed"])
            await #expect(throws: (any Error).self) { try await connection.channel.writeAndFlush(ByteBuffer(string: "x")).get() }
        }
    }

    /// Nothing is read while the channel may not, and all of it afterwards.
    @Test(arguments: Kind.allCases) func readsAreHeldBack(_ kind: Kind) async throws {
        try await Connection.with(kind) { connection in
            try await connection.channel.setOption(.autoRead, value: false).get()
            connection.send("later")
            try await Task.sleep(for: .milliseconds(50))
            #expect(connection.seen.bytes == [])
            try await connection.channel.setOption(.autoRead, value: true).get()
            try await eventually("the bytes") { connection.seen.bytes == Array("later".utf8) }
        }
    }

    /// A peer that does not read fills the channel, which says so; all bytes arrive in order when it reads.
    @Test(arguments: Kind.allCases) func backPressure(_ kind: Kind) async throws {
        try await Connection.with(kind) { connection in
            let pieces = 400
            let written = Mutex(0)
            for number in 0..<pieces {
                let promise = connection.channel.eventLoop.makePromise(of: Void.self)
                promise.futureResult.whenSuccess { written.withLock { $0 += 1 } }
                connection.channel.write(ByteBuffer(repeating: UInt8(number % 251), count: 40_000), promise: promise)
            }
            connection.channel.flush()
            try await connection.saw("full")
            #expect(written.withLock { $0 } < pieces)
            let waiting = try await connection.channel.getOption(.bufferedWritableBytes).get()
            #expect(waiting > 64 << 10 && waiting < pieces * 40_000)
            let all = try await connection.receive(pieces * 40_000)
            try #require(all.count == pieces * 40_000)
            for number in 0..<pieces {
                let (first, last) = (all[number * 40_000], all[number * 40_000 + 39_999])
                #expect(first == UInt8(number % 251) && last == first)
            }
            try await connection.saw("writable")
            try await eventually("all promises") { written.withLock { $0 } == pieces }
            #expect(try await connection.channel.getOption(.bufferedWritableBytes).get() == 0)
        }
    }

    /// Closing fails what was not sent, and each promise is kept once.
    @Test(arguments: Kind.allCases) func closingFailsWhatWaits(_ kind: Kind) async throws {
        try await Connection.with(kind) { connection in
            let results = Mutex<[Bool]>([])
            for _ in 0..<100 {
                let promise = connection.channel.eventLoop.makePromise(of: Void.self)
                promise.futureResult.whenComplete { result in
                    let isSent = if case .success = result { true } else { false }
                    results.withLock { $0.append(isSent) }
                }
                connection.channel.writeAndFlush(ByteBuffer(repeating: 1, count: 100_000), promise: promise)
            }
            try await connection.saw("full")
            try await connection.channel.close().get()
            try await eventually("all results") { results.withLock { $0.count } == 100 }
            #expect(results.withLock { $0.contains(false) })
            await #expect(throws: ChannelError.self) { try await connection.channel.close().get() }
            #expect(!connection.channel.isActive)
            try await connection.saw("removed")
        }
    }

    /// The output's end waits for the output.
    @Test(arguments: Kind.allCases) func theOutputEndsBehindItsLastByte(_ kind: Kind) async throws {
        try await Connection.with(kind, halfClosure: true) { connection in
            let bytes = 8_000_000
            connection.channel.writeAndFlush(ByteBuffer(repeating: 7, count: bytes), promise: nil)
            connection.channel.close(mode: .output, promise: nil)
            #expect(try await connection.receive().count == bytes)
            shutdown(connection.peer, CInt(SHUT_WR))
            try await connection.saw("inactive")
        }
    }

    /// A handler may close the channel in the middle of a read, and write from a promise of a write.
    @Test(arguments: Kind.allCases) func whatHandlersDoInBetween(_ kind: Kind) async throws {
        let closing = Seen { context in context.close(promise: nil) }
        try await Connection.with(kind, closing) { connection in
            connection.send("one")
            try await connection.saw("removed")
            #expect(connection.seen.events == ["active", "read", "inactive", "removed"])
        }
        let answering = Seen { context in
            let bound = context.loopBound
            context.writeAndFlush(NIOAny(ByteBuffer(string: "a"))).whenSuccess {
                let context = bound.value
                context.write(NIOAny(ByteBuffer(string: "b")), promise: nil)
                context.flush()
            }
        }
        try await Connection.with(kind, answering) { connection in
            connection.send("?")
            let answer = try await connection.receive(2)
            #expect(answer == Array("ab".utf8))
        }
    }

    /// Numbers of descriptors are used again at once: no event of a closed connection reaches the next one.
    @Test func descriptorsAreUsedAgain() async throws {
        for round in 0..<40 {
            try await Connection.with(.ours) { connection in
                connection.send("\(round)")
                try await eventually("the bytes") { connection.seen.bytes == Array("\(round)".utf8) }
                if round % 3 == 0 { connection.reset() } else if round % 3 == 1 { shutdown(connection.peer, CInt(SHUT_RDWR)) }
            }
        }
    }

    /// Options that a server sets, and one that it does not know.
    @Test func options() async throws {
        try await Connection.with(.ours) { connection in
            let channel = connection.channel
            try await channel.setOption(.tcpOption(.tcp_nodelay), value: 1).get()
            #expect(try await channel.getOption(.tcpOption(.tcp_nodelay)).get() != 0)
            try await channel.setOption(.maxMessagesPerRead, value: 9).get()
            #expect(try await channel.getOption(.maxMessagesPerRead).get() == 9)
            await #expect(throws: ChannelError.operationUnsupported) { try await channel.setOption(.writeSpin, value: 1).get() }
            await #expect(throws: IOError.self) { try await channel.setOption(.socketOption(.init(rawValue: 9_999)), value: 1).get() }
        }
    }
}
