import EarshotServer
import NIOCore
import RTMP
import RTMPTestSupport
import ServerTestSupport
import TestSupport
import Testing

@testable import Listening
@testable import Streaming
@testable import Support

extension Hostile {
    /// Malformed chunks and control messages.
    @Suite struct Chunks {
        /// A second of a publisher's bytes, with a few bits flipped.
        @Test func flippedBits() async throws {
            try await TestServer.withCanary { server in
                let session = Self.recording()
                var random = SeededRandom(2)
                let rounds = 320
                for round in 0..<rounds {
                    var bytes = session
                    for _ in 0...Int.random(in: 0..<8, using: &random) {
                        let position = Int.random(in: 0..<bytes.count, using: &random)
                        bytes[position] ^= 1 << UInt8.random(in: 0..<8, using: &random)
                    }
                    let client = try await RawClient.shaken(server.port)
                    await client.send(bytes: bytes)
                    if round.isMultiple(of: 3) { try await client.reset() } else { await client.close() }
                }
                try await server.expectConnections(2)
                #expect(server.server.parts.connections.counters.current.connectionsAccepted == UInt64(rounds + 2))
            }
        }

        /// connect, createStream, publish, metadata, headers, media, in chunks of 128 bytes: many headers to hit.
        private static func recording() -> [UInt8] {
            var session = ClientSession()
            let encoder = ChunkEncoder()
            var out = ByteBuffer()
            session.connect(app: "live", tcUrl: "rtmp://127.0.0.1/live")
            session.createStream()
            session.publish("flipped", on: 1)
            session.setDataFrame(.object([AMF0Property(name: "width", value: .number(640))]), on: 1)
            while let output = session.nextOutput() {
                guard case .send(let message) = output, message.type != .setChunkSize else { continue }
                encoder.encode(message, chunkStream: 3, into: &out)
            }
            var payloads: [(MessageType, [UInt8])] = [(.video, SyntheticTag.videoHeader), (.audio, SyntheticTag.audioHeader)]
            for number in 0..<20 {
                payloads.append((.video, SyntheticTag.video(number, isKeyframe: number == 0, bytes: 300)))
                payloads.append((.audio, SyntheticTag.audio(number, bytes: 60)))
            }
            for (index, (type, payload)) in payloads.enumerated() {
                let message = Message(type: type, streamID: 1, timestamp: UInt32(index * 20), payload: ByteBuffer(bytes: payload))
                encoder.encode(message, chunkStream: type == .video ? 6 : 4, into: &out)
            }
            return Array(out.readableBytesView)
        }

        @Test func messagesOverTheirLimits() async throws {
            try await TestServer.withCanary { server in
                let video: UInt32 = 15 << 20
                let audio: UInt32 = 1 << 20
                let small: UInt32 = 64 << 10
                let lies: [(type: MessageType, length: UInt32, isPublisher: Bool, setting: String)] = [
                    (.video, small + 1, false, "messageBeforePublish"), (.audio, small + 1, false, "messageBeforePublish"),
                    (.aggregate, small + 1, false, "messageBeforePublish"), (.commandAMF0, small + 1, false, "dataMessage"),
                    (.video, video + 65, true, "videoMessage"), (.audio, audio + 65, true, "audioMessage"),
                    (.aggregate, 0xFF_FFFF, true, "videoMessage"), (.sharedObjectAMF0, small + 1, true, "dataMessage"),
                    (.setChunkSize, small + 1, true, "dataMessage"), (MessageType(rawValue: 255), 0xFF_FFFF, true, "dataMessage"),
                ]
                for lie in lies {
                    let client =
                        lie.isPublisher ? try await RawClient.publishing(server.port, "liar") : try await RawClient.shaken(server.port)
                    var bytes = RawBytes()
                    bytes.header(chunkStream: 40, length: lie.length, type: lie.type, streamID: 1)
                    await client.send(bytes: bytes.buffer)
                    try await server.expectClosed(client, .protocolError)
                    // The line names the limit, so that the operator knows what to change.
                    #expect(await server.lines.comes("remote=\(client.address) ", "(limits.\(lie.setting))"))
                }
                let page = try await MetricsTests.scrape("\(server.http)/metrics", server.token)
                for setting in Set(lies.map(\.setting)) {
                    let hits = page["earshot_limit_hits_total{limit=\"limits.\(setting)\"}"]
                    #expect(hits == Double(lies.count { $0.setting == setting }), "\(setting)")
                }
            }
        }
    }
}
