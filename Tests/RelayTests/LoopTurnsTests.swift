import Foundation
import NIOCore
import NIOPosix
import Relay
import Synchronization
import TestSupport
import Testing

/// Long work in parts, between which others get their turn.
@Suite struct LoopTurnsTests {
    private final class Counter: Sendable {
        let parts = Atomic<Int>(0)
    }

    /// Counts the parts of work between a byte's write and its read. Used on one loop only.
    private final class Listener: ChannelInboundHandler, @unchecked Sendable {
        typealias InboundIn = ByteBuffer

        var parts = 0
        var writtenAt: Int?
        var waits: [Int] = []

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            if let writtenAt = self.writtenAt { self.waits.append(self.parts - writtenAt) }
            self.writtenAt = nil
        }
    }

    /// Two jobs on a loop with a socket, each part longer than the other's wait.
    @Test func socketsComeInBetween() async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let loop = group.next()
        let turns = LoopTurns(loop)
        let pipe = Pipe()
        let listener = Listener()
        let input = dup(pipe.fileHandleForReading.fileDescriptor)
        let channel = try await NIOPipeBootstrap(group: group)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(listener) }
            }
            .takingOwnershipOfDescriptor(input: input).get()
        try await loop.submit { turns.open() }.get()
        // The pipe is open once all of that is done.
        try await loop.submit {}.get()
        @Sendable func work() {
            let end = NIODeadline.now() + .milliseconds(2)
            while NIODeadline.now() < end {}
            listener.parts += 1
            if listener.parts % 10 == 0, listener.writtenAt == nil {
                listener.writtenAt = listener.parts
                pipe.fileHandleForWriting.write(Data([1]))
            }
            if listener.parts < 200 { turns.next { work() } }
        }
        try await loop.submit { for _ in 0..<2 { work() } }.get()
        try await eventually("the end of the work") { try await loop.submit { listener.parts >= 200 && listener.writtenAt == nil }.get() }
        let waits = try await loop.submit { listener.waits }.get()
        #expect(waits.count >= 15)
        #expect(waits.allSatisfy { $0 <= 2 }, "what both did in the same turn, at most: \(waits)")
        try await channel.close().get()
        try await loop.submit { turns.close() }.get()
        try await group.shutdownGracefully()
    }

    /// Work that waits when the turns end is still done, and so is later work.
    @Test func nothingIsLostAtTheEnd() async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let loop = group.next()
        let turns = LoopTurns(loop)
        let counter = Counter()
        for isOpen in [false, true] {
            try await loop.submit {
                if isOpen { turns.open() }
                for _ in 0..<3 { turns.next { counter.parts.add(1, ordering: .relaxed) } }
            }.get()
            try await eventually("tasks by timer or by pipe") { counter.parts.load(ordering: .relaxed) == 3 }
            try await loop.submit {
                turns.next { counter.parts.add(1, ordering: .relaxed) }
                turns.close()
                turns.next { counter.parts.add(1, ordering: .relaxed) }
            }.get()
            try await eventually("tasks at the end") { counter.parts.load(ordering: .relaxed) == 5 }
            counter.parts.store(0, ordering: .relaxed)
        }
        try await group.shutdownGracefully()
    }
}
