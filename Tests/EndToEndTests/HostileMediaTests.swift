import EarshotServer
import NIOCore
import RTMP
import RTMPTestSupport
import Rooms
import ServerConfiguration
import ServerTestSupport
import TestSupport
import Testing

@testable import Support

extension Hostile {
    /// Malformed audio and video messages.
    @Suite struct MediaMessages {
        /// 100,000 messages in one write: all are relayed, and nobody else waits.
        @Test func tinyMessages() async throws {
            try await TestServer.withCanary { server in
                let client = try await RawClient.publishing(server.port, "tiny")
                let viewer = try await server.player(of: "tiny")
                let count = 100_000
                var bytes = RawBytes()
                for _ in 0..<count {
                    bytes.header(chunkStream: 4, length: 2, type: .audio, streamID: 1)
                    bytes.bytes([0xAF, 1])
                }
                await client.send(bytes: bytes.buffer)
                try await eventually("nearly all of them") { viewer.bytesReceived >= count * 14 }
                try await eventually("all of them") { viewer.media().count >= count }
                #expect(viewer.media().count == count)
                await viewer.close()
                await client.close()
            }
        }

        /// After one header, each byte is a message of its own (RTMP 1.0 §5.3.1.2.4).
        /// Several such clients keep a loop busy without end; the others still get their turn.
        @Test(arguments: [1, 6]) func oneByteMessages(_ count: Int) async throws {
            // The streams of those who left stay listed: a slow server takes minutes for all.
            try await TestServer.withCanary({ $0.rooms.policy.graceMs = 3_600_000 }) { server in
                var bytes = RawBytes()
                bytes.header(chunkStream: 4, length: 0, type: .audio, streamID: 1)
                bytes.repeating(0xC4, 99_999)
                bytes.header(chunkStream: 4, length: 2, type: .audio, streamID: 1)
                bytes.bytes([0xAF, 1])
                var clients: [RawClient] = []
                for index in 0..<count { clients.append(try await RawClient.publishing(server.port, "bytes\(index)")) }
                for client in clients { await client.send(bytes: bytes.buffer) }
                // They close at once: what they sent before still counts.
                for client in clients { await client.close() }
                try await eventually("all \(count) to be whole", within: 600) {
                    try await server.api("streams")["list"].list.count { $0["bytesIn"].int == 2 } == count
                }
                for client in clients { try await server.expectClosed(client, .connectionLost) }
            }
        }
    }
}
