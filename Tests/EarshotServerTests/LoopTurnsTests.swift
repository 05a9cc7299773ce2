import NIOCore
import NIOPosix
import Synchronization
import Testing

@testable import EarshotServer

/// Long work in parts, and who waits for it.
@Suite struct LoopTurnsTests {
    private final class Echo: ChannelInboundHandler, Sendable {
        typealias InboundIn = ByteBuffer

        func channelRead(context: ChannelHandlerContext, data: NIOAny) { context.writeAndFlush(data, promise: nil) }
    }

    private final class Counter: Sendable {
        let parts = Atomic<Int>(0)
        let isOver = Atomic<Bool>(false)
    }

    /// Two works whose parts each outlast the other's wait, on the loop of a connection that is answered meanwhile.
    @Test func socketsComeInBetween() async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let loop = group.next()
        let turns = LoopTurns(loop)
        try await loop.submit { turns.open() }.get()
        let listening = try await ServerBootstrap(group: group)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(Echo()) }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        let port = try #require(listening.localAddress?.port)
        let answers = Counter()
        let client = try await ClientBootstrap(group: RawClient.group)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(Answers(answers)) }
            }
            .connect(host: "127.0.0.1", port: port).get()
        try await client.writeAndFlush(ByteBuffer(bytes: [0])).get()
        try await eventually("the first answer") { answers.parts.load(ordering: .relaxed) == 1 }

        let counter = Counter()
        @Sendable func work() {
            let end = NIODeadline.now() + .milliseconds(5)
            while NIODeadline.now() < end {}
            counter.parts.add(1, ordering: .relaxed)
            if !counter.isOver.load(ordering: .relaxed) { turns.next { work() } }
        }
        for _ in 0..<2 { loop.execute { work() } }
        for round in 2...11 {
            let before = counter.parts.load(ordering: .relaxed)
            try await client.writeAndFlush(ByteBuffer(bytes: [0])).get()
            try await eventually("an answer") { answers.parts.load(ordering: .relaxed) == round }
            // The two that run when the byte comes, and the two after; the client's own wait is in it.
            #expect(counter.parts.load(ordering: .relaxed) - before < 40)
        }
        counter.isOver.store(true, ordering: .relaxed)
        try await client.close().get()
        try await listening.close().get()
        try await loop.submit { turns.close() }.get()
        try await group.shutdownGracefully()
    }

    /// What waits when the turns end is done, and what comes later too.
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

    private final class Answers: ChannelInboundHandler, Sendable {
        typealias InboundIn = ByteBuffer

        private let counter: Counter

        init(_ counter: Counter) { self.counter = counter }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            self.counter.parts.add(self.unwrapInboundIn(data).readableBytes, ordering: .relaxed)
        }
    }
}
