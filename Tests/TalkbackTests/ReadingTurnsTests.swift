import Foundation
import LibC
import NIOCore
import Sockets
import Synchronization
import TestSupport
import Testing

@testable import Streaming
@testable import Talkback

/// Waiting for event loops that are late in reading.
@Suite struct ReadingTurnsTests {
    /// An event loop with its own socket. Counts the bytes that it has read.
    private final class Reader: ChannelInboundHandler, @unchecked Sendable {
        typealias InboundIn = ByteBuffer

        let bytes = Atomic<Int>(0)
        /// The number of times that ``waiting`` was read.
        let polls = Atomic<Int>(0)
        let loop: SocketLoop
        private let peer: CInt
        private let channel: SocketChannel

        init() throws {
            self.loop = try SocketLoop(name: "test")
            var ends: [CInt] = [0, 0]
            try #require(socketpair(AF_UNIX, streamSocket, 0, &ends) == 0)
            self.peer = ends[1]
            self.channel = SocketChannel(ends[0], on: self.loop)
        }

        func open() async throws {
            self.channel.start { channel in
                channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(self) }
            }
            try await self.loop.submit {}.get()
        }

        func close() async throws {
            try await self.channel.close().get()
            LibC.close(self.peer)
            try await self.loop.shutdownGracefully()
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            self.bytes.add(self.unwrapInboundIn(data).readableBytes, ordering: .relaxed)
        }

        func send(_ count: Int) { _ = LibC.send(self.peer, Array(repeating: UInt8(0), count: count), count, CInt(MSG_NOSIGNAL)) }

        /// Blocks the loop until the gate opens. Returns once it is blocked.
        func stall(_ gate: DispatchSemaphore) async {
            await withCheckedContinuation { done in
                self.loop.execute {
                    done.resume()
                    gate.wait()
                }
            }
        }

        var waiting: ReadingTurns.Waiting {
            self.polls.add(1, ordering: .relaxed)
            return .init(
                frames: self.bytes.load(ordering: .relaxed), loops: [ObjectIdentifier(self.loop): self.loop])
        }
    }

    /// Runs ``ReadingTurns/wait(limit:_:)`` on a thread that may block.
    private static func wait(limit: DispatchTimeInterval, _ look: @escaping @Sendable () -> ReadingTurns.Waiting) async {
        await withCheckedContinuation { done in
            Thread.detachNewThread {
                ReadingTurns.wait(limit: limit, look)
                done.resume()
            }
        }
    }

    private static func run(_ body: (Reader) async throws -> Void) async throws {
        let reader = try Reader()
        try await reader.open()
        try await body(reader)
        try await reader.close()
    }

    /// The loop is late, and its input is still in the socket: the wait ends with all of it read.
    @Test(.timeLimit(.minutes(5))) func aLateLoopIsWaitedFor() async throws {
        try await Self.run { reader in
            for round in 1...20 {
                let gate = DispatchSemaphore(value: 0)
                defer { gate.signal() }
                await reader.stall(gate)
                reader.send(1_000)
                let polls = reader.polls.load(ordering: .relaxed)
                async let waited: Void = Self.wait(limit: .seconds(30)) { reader.waiting }
                // The wait has begun, and the loop is still blocked.
                try await eventually("somebody to wait") { reader.polls.load(ordering: .relaxed) > polls }
                #expect(reader.bytes.load(ordering: .relaxed) == (round - 1) * 1_000)
                gate.signal()
                await waited
                #expect(reader.bytes.load(ordering: .relaxed) == round * 1_000)
            }
        }
    }

    /// The wait is short enough for listeners.
    @Test(.timeLimit(.minutes(5))) func aLoopThatStandsIsNotWaitedForLong() async throws {
        try await Self.run { reader in
            let gate = DispatchSemaphore(value: 0)
            defer { gate.signal() }
            await reader.stall(gate)
            reader.send(1_000)
            await Self.wait(limit: .milliseconds(50)) { reader.waiting }
            #expect(reader.bytes.load(ordering: .relaxed) == 0)
        }
    }

    /// Endless input does not hold up the clock. A room without talkers waits for nothing.
    @Test(.timeLimit(.minutes(5))) func turnsAreBounded() async throws {
        try await Self.run { reader in
            await Self.wait(limit: .seconds(30)) {
                reader.send(10)
                reader.bytes.add(1, ordering: .relaxed)
                return reader.waiting
            }
            #expect(reader.polls.load(ordering: .relaxed) == ReadingTurns.mostTurns)
            reader.polls.store(0, ordering: .relaxed)
            await Self.wait(limit: .seconds(30)) {
                reader.polls.add(1, ordering: .relaxed)
                return .init()
            }
            #expect(reader.polls.load(ordering: .relaxed) == 1)
        }
    }
}
