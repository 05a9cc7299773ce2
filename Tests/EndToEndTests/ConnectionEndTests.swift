import NIOCore
import NIOPosix
import RTMP
import ServerTestSupport
import Testing

@testable import EarshotServer
@testable import Listening
@testable import RTMPServer
@testable import Streaming

/// Connections that end during their own writes.
@Suite struct ConnectionEndTests {
    /// Sends more messages than one turn handles; the last answers find the peer gone.
    @Test func countedOnce() async throws {
        try await TestServer.run { server in
            let parts = server.server.parts
            let listening = try await parts.streams.placement.bootstrap(parts.connections.rtmpGate) { channel in
                channel.eventLoop.makeCompletedFuture {
                    let loop = try #require(parts.streams.context(of: channel.eventLoop))
                    let connection = RTMPConnection(
                        id: parts.connections.nextSessionID(), services: parts.rtmp, loop: loop, isTLS: false)
                    try channel.pipeline.syncOperations.addHandlers([GoneAfterYield(connection), connection])
                }
            }.bind(host: "127.0.0.1", port: 0).get()
            let client = try await RawClient.connected(try #require(listening.localAddress?.port))
            client.send((1...600).map { Command("getStreamLength", transaction: Double($0)).message(streamID: 0) })
            try await client.waitUntilClosed()
            // Runs after the turn in which it was closed.
            #expect(try await parts.streams.collect { $0.sessionSnapshots() }.isEmpty)
            #expect(parts.connections.counters.current.closed.values.reduce(0, +) == 1)
            #expect(server.lines.all.count { $0.contains("Connection closed") } == 1)
            try await listening.close()
        }
    }

    /// Closes the connection in the flush of messages deferred to a later turn. Loop-bound.
    private final class GoneAfterYield: ChannelOutboundHandler {
        typealias OutboundIn = ByteBuffer

        private let connection: RTMPConnection
        private var hasYielded = false

        init(_ connection: RTMPConnection) { self.connection = connection }

        func flush(context: ChannelHandlerContext) {
            if self.connection.input.isYielding { self.hasYielded = true } else if self.hasYielded { context.close(promise: nil) }
            context.flush()
        }
    }
}
