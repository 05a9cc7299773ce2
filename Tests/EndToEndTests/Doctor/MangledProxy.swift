import NIOCore
import NIOPosix

/// A TCP proxy that damages what the server sends, on connections whose requests hold a word: a bit of one in 600 bytes, after the first 1,500.
enum MangledProxy {
    static func run(to port: Int, at listen: Int, word: String, _ body: () async throws -> Void) async throws {
        let group = MultiThreadedEventLoopGroup.singleton
        let channel = try await ServerBootstrap(group: group)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelOption(.autoRead, value: false)
            .childChannelInitializer { client in
                // Both ends on one loop, so that neither needs a lock.
                ClientBootstrap(group: client.eventLoop).connect(host: "127.0.0.1", port: port).flatMap { server in
                    client.eventLoop.makeCompletedFuture {
                        let state = State(word)
                        try client.pipeline.syncOperations.addHandler(Glue(server, state, damages: false))
                        try server.pipeline.syncOperations.addHandler(Glue(client, state, damages: true))
                    }.flatMap { client.setOption(.autoRead, value: true) }
                }
            }
            .bind(host: "127.0.0.1", port: listen).get()
        do {
            try await body()
        } catch {
            try await channel.close()
            throw error
        }
        try await channel.close()
    }

    private final class State {
        let word: [UInt8]
        var isHit = false
        var sent = 0
        init(_ word: String) { self.word = Array(word.utf8) }
    }

    private final class Glue: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer

        private let other: any Channel
        private let state: State
        private let damages: Bool

        init(_ other: any Channel, _ state: State, damages: Bool) {
            self.other = other
            self.state = state
            self.damages = damages
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            var bytes = Array(self.unwrapInboundIn(data).readableBytesView)
            if !self.damages, !bytes.isEmpty {
                let end = max(0, bytes.count - self.state.word.count)
                if (0...end).contains(where: { bytes[$0...].starts(with: self.state.word) }) { self.state.isHit = true }
            }
            if self.damages, self.state.isHit {
                for index in bytes.indices {
                    self.state.sent += 1
                    if self.state.sent > 1_500, self.state.sent % 600 == 0 { bytes[index] ^= 1 }
                }
            }
            self.other.writeAndFlush(ByteBuffer(bytes: bytes), promise: nil)
        }

        func channelInactive(context: ChannelHandlerContext) { self.other.close(promise: nil) }
    }
}
