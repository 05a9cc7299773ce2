import EarshotServer
import NIOCore
import RTMP
import RTMPTestSupport
import ServerTestSupport
import Testing

@testable import ServerConfiguration
@testable import Support

extension Hostile {
    /// Attacks before and during the handshake and connect.
    @Suite struct Opening {
        @Test func silentClients() async throws {
            try await TestServer.withCanary({
                $0.limits.handshakeMs = 3_000; $0.limits.connectMs = 3_000
            }) { server in
                let silent = try await RawClient.open(server.port)
                let halfway = try await RawClient.open(server.port)
                await halfway.send(bytes: [3] + [UInt8](repeating: 0, count: 1_000))
                let shaken = try await RawClient.shaken(server.port)
                try await server.expectClosed(silent, .handshakeTimeout)
                try await server.expectClosed(halfway, .handshakeTimeout)
                try await server.expectClosed(shaken, .connectTimeout)
            }
        }

        /// A byte now and then does not extend the deadline.
        @Test func trickle() async throws {
            try await TestServer.withCanary({
                $0.limits.handshakeMs = 3_000; $0.limits.connectMs = 3_000
            }) { server in
                let handshaking = try await RawClient.open(server.port)
                await handshaking.send(bytes: [3])
                let connecting = try await RawClient.shaken(server.port)
                var connect = RawBytes()
                connect.header(length: 60_000, type: .commandAMF0)
                await connecting.send(bytes: connect.buffer)
                for client in [handshaking, connecting] {
                    client.channel.eventLoop.scheduleRepeatedTask(initialDelay: .zero, delay: .milliseconds(50)) { task in
                        guard client.channel.isActive else { return task.cancel() }
                        client.channel.writeAndFlush(ByteBuffer(bytes: [0]), promise: nil)
                    }
                }
                try await server.expectClosed(handshaking, .handshakeTimeout)
                try await server.expectClosed(connecting, .connectTimeout)
            }
        }
    }
}
