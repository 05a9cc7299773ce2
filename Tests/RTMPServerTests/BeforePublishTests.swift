import APITestSupport
import NIOCore
import RTMP
import RTMPTestSupport
import ServerTestSupport
import Support
import TestSupport
import Testing

@testable import EarshotServer
@testable import ServerConfiguration
@testable import Streaming

/// Publishers that send before they are admitted, and frames of every size.
@Suite struct BeforePublishTests {
    private static let chunkSize = 60_000

    /// Messages as one run of bytes, in large chunks announced by Set Chunk Size.
    private static func encoded(_ messages: [Message]) -> ByteBuffer {
        var bytes = ByteBuffer()
        ChunkEncoder().encode(ControlMessage.setChunkSize(UInt32(Self.chunkSize)).message, chunkStream: 2, into: &bytes)
        for message in messages {
            ChunkEncoder(chunkSize: Self.chunkSize).encode(message, chunkStream: message.type == .audio ? 4 : 6, into: &bytes)
        }
        return bytes
    }

    /// The largest frames, in one piece each: a picture of 15 MiB, audio of 1 MiB and of 262,147 bytes.
    @Test func theLargestFramesPass() async throws {
        try await UnboundServer.run({
            $0.relay.maxBehindMs = 60_000
            $0.relay.skipBehindMs = 50_000
        }) { server in
            let viewer = try await server.player(of: "cam")
            let publisher = try await RawClient.publishing(server.port, "cam")
            let sound = [262_147, (1 << 20) + 2].map { count in
                Message(type: .audio, streamID: 1, payload: ByteBuffer(bytes: [0xAF, 1] + [UInt8](repeating: 5, count: count - 2)))
            }
            let picture = Message(
                type: .video, streamID: 1, payload: ByteBuffer(bytes: [0x17, 1, 0, 0, 0] + [UInt8](repeating: 7, count: 15 << 20)))
            await publisher.send(bytes: Self.encoded(sound + [picture]))
            try await eventually("all three") { viewer.media().count == 3 || publisher.isClosed }
            #expect(viewer.media().map { $0.message.payload } == (sound + [picture]).map(\.payload))
            for client in [publisher, viewer] { await client.close() }
        }
    }

    /// Players never get the limits for media.
    @Test func playersMaySendLittle() async throws {
        try await UnboundServer.run { server in
            let viewer = try await server.player(of: "cam")
            var bytes = RawBytes()
            bytes.header(chunkStream: 40, length: (64 << 10) + 1, type: .video, streamID: 1)
            await viewer.send(bytes: bytes.buffer)
            try await server.expectClosed(viewer, .protocolError)
            #expect(await server.lines.comes("remote=\(viewer.address) ", "(limits.messageBeforePublish)"))
        }
    }
}
