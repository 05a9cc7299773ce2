import NIOCore
import RTMP
import ServerTestSupport
import TestSupport
import Testing

/// Limits of what a peer sends over RTMP, changed by a reload: the same bytes are read before it and refused after it.
@Suite struct ReloadMessageTests {
    /// Bytes of a client that has only shaken hands, in chunks of 128 bytes.
    private struct Bytes: Sendable, CustomTestStringConvertible {
        let limit: String
        let settings: ReloadingServer.Settings
        let buffer: ByteBuffer
        var testDescription: String { self.limit }

        init(_ limit: String, _ settings: ReloadingServer.Settings, _ body: (inout RawBytes) -> Void) {
            self.limit = limit
            self.settings = settings
            var bytes = RawBytes()
            body(&bytes)
            self.buffer = bytes.buffer
        }
    }

    /// Begins messages of `length` bytes on chunk streams of their own, `rounds` chunks of each.
    private static func begin(_ count: Int, of length: UInt32, rounds: Int = 1, _ bytes: inout RawBytes) {
        for round in 0..<rounds {
            for id in 3..<(3 + count) {
                if round == 0 {
                    bytes.header(chunkStream: UInt32(id), length: length, type: .video, streamID: 1)
                } else {
                    // Format 3, RTMP 1.0 §5.3.1.2.4.
                    bytes.bytes([0xC0 | UInt8(id)])
                }
                bytes.repeating(0x27, 128)
            }
        }
    }

    private static let unfinished: [Bytes] = [
        Bytes("limits.partialMessages", ["limits.partialMessages": "3"]) { Self.begin(4, of: 300, &$0) },
        Bytes(
            "limits.partialBytes",
            [
                "limits.partialBytes": "2KiB", "limits.videoMessage": "2KiB", "limits.audioMessage": "2KiB", "limits.dataMessage": "2KiB",
            ]
        ) { Self.begin(20, of: 1_000, &$0) },
        Bytes("limits.messageBeforePublish", ["limits.messageBeforePublish": "1KiB"]) { Self.begin(1, of: 1_500, &$0) },
        Bytes("limits.bytesBeforePublish", ["limits.bytesBeforePublish": "16KiB", "limits.messageBeforePublish": "4KiB"]) {
            Self.begin(60, of: 1_000, rounds: 3, &$0)
        },
    ]

    @Test func beforeAPublish() async throws {
        try await ReloadingServer.run { server in
            func isRead(_ bytes: Bytes) async throws -> Bool {
                let client = try await RawClient.shaken(server.rtmpPort)
                await client.send(bytes: bytes.buffer)
                try await client.run { $0.ping(1) }
                try await eventually("an answer") { client.isClosed || client.outputs.contains(.pong(1)) }
                defer { Task { await client.close() } }
                return client.outputs.contains(.pong(1))
            }
            for bytes in Self.unfinished { #expect(try await isRead(bytes), "\(bytes.limit), by default") }
            for bytes in Self.unfinished {
                try await server.apply(bytes.settings)
                #expect(try await !isRead(bytes), "\(bytes.limit)")
                try await server.logs("Connection closed", "(\(bytes.limit))")
            }
        }
    }

    @Test func ofAPublisher() async throws {
        try await ReloadingServer.run { server in
            func isRead(_ type: MessageType) async throws -> Bool {
                let client = try await RawClient.publishing(server.rtmpPort, "cam1")
                client.send(type, [0xAF, 1] + [UInt8](repeating: 7, count: 1_500))
                try await client.run { $0.ping(1) }
                try await eventually("an answer") { client.isClosed || client.outputs.contains(.pong(1)) }
                let isRead = client.outputs.contains(.pong(1))
                await client.close()
                return isRead
            }
            // The last type is unknown: such messages are read as data, and dropped.
            let messages: [(type: MessageType, limit: String)] = [
                (.audio, "limits.audioMessage"), (.video, "limits.videoMessage"), (MessageType(rawValue: 99), "limits.dataMessage"),
            ]
            for message in messages { #expect(try await isRead(message.type), "\(message.limit), by default") }
            try await server.apply(["limits.audioMessage": "1KiB", "limits.videoMessage": "1KiB", "limits.dataMessage": "1KiB"])
            for message in messages {
                #expect(try await !isRead(message.type), "\(message.limit)")
                try await server.logs("Connection closed", "(\(message.limit))")
            }
        }
    }

    /// A publisher that sends nothing, and one that sends more than is queued for the recorder.
    @Test func mediaInTime() async throws {
        try await ReloadingServer.run(["limits.firstMedia": "10m"]) { server in
            try await server.apply(["limits.firstMedia": "300ms"])
            let mute = try await RawClient.publishing(server.rtmpPort, "mute")
            try await eventually("the end of who sends nothing") { mute.isClosed }
            try await server.logs("Connection closed", "reason=first_media_timeout")

            try await server.apply(["limits.frameQueue": "1MiB", "recording.apps": "[live]", "recording.minFree": "0"])
            let client = try await RawClient.publishing(server.rtmpPort, "cam1")
            func picture(_ number: Int, _ tag: [UInt8]) -> Message {
                Message(type: .video, streamID: 1, timestamp: UInt32(number) * 40, payload: ByteBuffer(bytes: tag))
            }
            var messages = [picture(0, SyntheticTag.videoHeader)]
            // Behind each picture that fills the queue comes one in the same read.
            for number in 0..<16 {
                messages.append(picture(2 * number, SyntheticTag.video(2 * number, isKeyframe: true, bytes: 3 << 19)))
                messages.append(picture(2 * number + 1, SyntheticTag.video(2 * number + 1, isKeyframe: false, bytes: 100)))
            }
            client.send(messages)
            try await server.logs("a recording has gaps", "limits.frameQueue 1MiB")
            await client.close()
        }
    }
}
