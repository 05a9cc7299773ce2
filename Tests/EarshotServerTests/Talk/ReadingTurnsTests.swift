import Foundation
import NIOCore
import NIOPosix
import Synchronization
import Testing

@testable import EarshotServer

/// Waiting for loops that are late in reading.
@Suite struct ReadingTurnsTests {
    /// A loop with a socket of its own, and what it has read of it.
    private final class Reader: ChannelInboundHandler, @unchecked Sendable {
        typealias InboundIn = ByteBuffer

        let bytes = Atomic<Int>(0)
        /// How often somebody asked what has come.
        let looks = Atomic<Int>(0)
        private let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let loop: any EventLoop
        private let turns: LoopTurns
        private let pipe = Pipe()
        // Set once, before anything else is done with it.
        private var channel: (any Channel)?

        init() {
            self.loop = self.group.next()
            self.turns = LoopTurns(self.loop)
        }

        func open() async throws {
            self.channel = try await NIOPipeBootstrap(group: self.group)
                .channelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(self) }
                }
                .takingOwnershipOfDescriptor(input: dup(self.pipe.fileHandleForReading.fileDescriptor)).get()
            try await self.loop.submit { self.turns.open() }.get()
            // The pipe of the turns is open once everything of that is done.
            try await self.loop.submit {}.get()
        }

        func close() async throws {
            try await self.channel?.close().get()
            try await self.loop.submit { self.turns.close() }.get()
            try await self.group.shutdownGracefully()
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            self.bytes.add(self.unwrapInboundIn(data).readableBytes, ordering: .relaxed)
        }

        func send(_ count: Int) { self.pipe.fileHandleForWriting.write(Data(count: count)) }

        /// Holds the loop up until the gate is opened; it stands when this returns.
        func stall(_ gate: DispatchSemaphore) async {
            await withCheckedContinuation { done in
                self.loop.execute {
                    done.resume()
                    gate.wait()
                }
            }
        }

        var waiting: ReadingTurns.Waiting {
            self.looks.add(1, ordering: .relaxed)
            return .init(
                frames: self.bytes.load(ordering: .relaxed), loops: [ObjectIdentifier(self.loop): (self.loop, self.turns)])
        }
    }

    /// On a thread that may block: what was there when it had waited.
    private static func wait(limit: DispatchTimeInterval, _ look: @escaping @Sendable () -> ReadingTurns.Waiting) async {
        await withCheckedContinuation { done in
            Thread.detachNewThread {
                ReadingTurns.wait(limit: limit, look)
                done.resume()
            }
        }
    }

    private static func run(_ body: (Reader) async throws -> Void) async throws {
        let reader = Reader()
        try await reader.open()
        try await body(reader)
        try await reader.close()
    }

    /// The loop is late, and what it was sent lies in its socket: whoever waits has all of it.
    @Test(.timeLimit(.minutes(1))) func aLateLoopIsWaitedFor() async throws {
        try await Self.run { reader in
            for round in 1...20 {
                let gate = DispatchSemaphore(value: 0)
                defer { gate.signal() }
                await reader.stall(gate)
                reader.send(1_000)
                let looks = reader.looks.load(ordering: .relaxed)
                async let waited: Void = Self.wait(limit: .seconds(30)) { reader.waiting }
                // It has begun to wait, and the loop still stands.
                try await eventually("somebody to wait") { reader.looks.load(ordering: .relaxed) > looks }
                #expect(reader.bytes.load(ordering: .relaxed) == (round - 1) * 1_000)
                gate.signal()
                await waited
                #expect(reader.bytes.load(ordering: .relaxed) == round * 1_000)
            }
        }
    }

    /// Not for longer than is good for those who listen.
    @Test(.timeLimit(.minutes(1))) func aLoopThatStandsIsNotWaitedForLong() async throws {
        try await Self.run { reader in
            let gate = DispatchSemaphore(value: 0)
            defer { gate.signal() }
            await reader.stall(gate)
            reader.send(1_000)
            await Self.wait(limit: .milliseconds(50)) { reader.waiting }
            #expect(reader.bytes.load(ordering: .relaxed) == 0)
        }
    }

    /// Who sends without end does not hold up the clock, and a room without talkers asks for nothing.
    @Test(.timeLimit(.minutes(1))) func turnsAreBounded() async throws {
        try await Self.run { reader in
            await Self.wait(limit: .seconds(30)) {
                reader.send(10)
                reader.bytes.add(1, ordering: .relaxed)
                return reader.waiting
            }
            #expect(reader.looks.load(ordering: .relaxed) == ReadingTurns.mostTurns)
            reader.looks.store(0, ordering: .relaxed)
            await Self.wait(limit: .seconds(30)) {
                reader.looks.add(1, ordering: .relaxed)
                return .init()
            }
            #expect(reader.looks.load(ordering: .relaxed) == 1)
        }
    }
}
