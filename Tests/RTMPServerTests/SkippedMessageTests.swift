import APITestSupport
import EarshotServer
import NIOCore
import RTMP
import RTMPTestSupport
import ServerTestSupport
import Support
import TestSupport
import Testing

/// A good push is not ended by one bad message: it is skipped, counted, and told in the session's trace.
@Suite struct SkippedMessageTests {
    private struct Bad: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let message: Message
        /// A part of the trace's line.
        let trace: String

        init(_ what: String, _ type: MessageType, _ payload: [UInt8], on streamID: UInt32 = 1, trace: String) {
            self.testDescription = what
            self.message = Message(type: type, streamID: streamID, payload: ByteBuffer(bytes: payload))
            self.trace = trace
        }
    }

    private static let bad: [Bad] = [
        Bad("AF", .audio, [0xAF], trace: "audio of 1 bytes: "), Bad("17", .video, [0x17], trace: "video of 1 bytes: "),
        Bad("27 01", .video, [0x27, 1], trace: "video of 2 bytes: "), Bad("17 00", .video, [0x17, 0], trace: "video of 2 bytes: "),
        Bad("a cut enhanced header", .video, [0x91, 0x68, 0x76, 0x63], trace: "video of 4 bytes: "),
        Bad(
            "117 KB of metadata", .dataAMF0, [2, 0, 10] + Array("onMetaData".utf8) + [UInt8](repeating: 5, count: 117 << 10),
            trace: "data of 119821 bytes; the limit is 65536 (limits.dataMessage)"),
        Bad("a command cut short", .commandAMF0, [2, 0, 9, 0x41], trace: "unreadable command"),
        Bad(
            "a command that nobody knows", .commandAMF0, [2, 0, 3] + Array("foo".utf8) + [0] + [UInt8](repeating: 0, count: 8) + [5],
            trace: "a command that this server does not know"),
        Bad("a ping cut short", .userControl, [0, 6, 1], on: 0, trace: "control message type 4"),
        Bad("an aggregate that lies", .aggregate, [8, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0, 0, 0, 0, 0xAF], trace: "aggregate"),
        Bad("media on a stream that nobody publishes", .audio, [0xAF, 1, 2], on: 7, trace: "media on message stream 7"),
    ]

    @Test(arguments: bad.indices) func `a bad message is skipped, counted and told`(_ index: Int) async throws {
        let bad = Self.bad[index]
        try await UnboundServer.run { server in
            let publisher = try await server.livePublisher("cam1")
            let viewer = try await server.player(of: "cam1")
            publisher.send(bad.message)
            publisher.send(.audio, SyntheticTag.audio(2, bytes: 20), timestamp: 20)
            try await eventually("the message behind it") { viewer.media().contains { SyntheticTag.number($0.message) == 2 } }
            #expect(!publisher.isClosed && server.skipped == 1)
            let sessions = try await server.api("sessions")["list"].list
            let id = try #require(sessions.first { $0["publishing"][0].string == "live/cam1" }?["sessionId"].int, "the push's session")
            let trace = try await server.api("sessions/\(id)/trace")["entries"].list
            let told = trace.first { $0["name"].string == "messageSkipped" }
            #expect(told?["text"].string?.contains(bad.trace) == true, "\(String(describing: told?.value))")
            await viewer.close()
            await publisher.close()
        }
    }

    /// The chunk stream itself is lost behind these.
    @Test func `what breaks the chunk stream ends the push`() async throws {
        try await UnboundServer.run { server in
            for message in [
                Message(type: .setChunkSize, payload: ByteBuffer(bytes: [0, 1])),
                Message(type: .setChunkSize, payload: ByteBuffer(bytes: [0, 0, 0, 0])),
                Message(type: .abort, payload: ByteBuffer(bytes: [0])),
            ] {
                let publisher = try await server.livePublisher("cam1")
                publisher.send(message)
                try await server.expectClosed(publisher, .protocolError)
            }
            #expect(server.skipped == 0)
        }
    }

    /// Media of some encoders comes on message stream 0, though createStream answered 1.
    @Test func `media on message stream 0 belongs to the only push`() async throws {
        try await UnboundServer.run { server in
            let publisher = try await RawClient.publishing(server.port, "cam1")
            publisher.send(.dataAMF0, [2, 0, 10] + Array("onMetaData".utf8) + [3, 0, 1, 0x61, 1, 1, 0, 0, 9], on: 0)
            publisher.send(.audio, SyntheticTag.audioHeader, on: 0)
            publisher.send(.audio, SyntheticTag.audio(1, bytes: 20), on: 0)
            try await server.wait("streams") { list in
                list["list"].list.contains { $0["name"].string == "cam1" && $0["bytesIn"].int == 46 }
            }
            let viewer = try await server.player(of: "cam1")
            publisher.send(.audio, SyntheticTag.audio(2, bytes: 20), timestamp: 20, on: 0)
            try await eventually("media") { viewer.media().contains { SyntheticTag.number($0.message) == 2 } }
            #expect(viewer.media().first?.message.type == .dataAMF0 && server.skipped == 0)
            await viewer.close()
            await publisher.close()
        }
    }
}
