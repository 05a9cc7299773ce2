import APITestSupport
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
        @Test func brokenChunkStreams() async throws {
            try await UnboundServer.withCanary { server in
                var inside = RawBytes()
                inside.header(length: 200, type: .commandAMF0)
                inside.repeating(0, 128)
                inside.header(length: 10, type: .commandAMF0)
                var lone = RawBytes()
                lone.bytes([0x83, 0, 0, 1])
                var many = RawBytes()
                // 4,097 empty chunk streams.
                for id in UInt32(3)..<4_100 { many.header(chunkStream: id, length: 0, type: .audio) }
                for bytes in [inside, lone, many] {
                    let client = try await RawClient.shaken(server.port)
                    await client.send(bytes: bytes.buffer)
                    try await server.expectClosed(client, .protocolError)
                }
            }
        }

        @Test func lyingAggregates() async throws {
            try await UnboundServer.withCanary { server in
                let bodies: [[UInt8]] = [
                    [8, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0, 0, 0, 0, 0xAF],  // longer than its body
                    [22, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 11],  // an aggregate in an aggregate
                    [8, 0, 0],  // cut short
                    [8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],  // half a back pointer
                    Array([[UInt8]](repeating: [8] + [UInt8](repeating: 0, count: 14), count: 100_000).joined()),  // without end
                ]
                let client = try await RawClient.publishing(server.port, "aggregate")
                for body in bodies { client.send(.aggregate, body) }
                try await server.pass(client)
                #expect(!client.isClosed && server.skipped == UInt64(bodies.count))
                await client.close()
            }
        }

        @Test func chunkSizes() async throws {
            try await UnboundServer.withCanary { server in
                for size: UInt32 in [0, 0x8000_0000, 0xFFFF_FFFF] {
                    let client = try await RawClient.connected(server.port)
                    client.send(ControlMessage.setChunkSize(size).message)
                    try await server.expectClosed(client, .protocolError)
                }
                // The largest legal size and the smallest are served.
                for size in [1, 0x7FFF_FFFF] {
                    let client = try await RawClient.connected(server.port)
                    client.send(ControlMessage.setChunkSize(UInt32(size)).message)
                    let command = Command("getStreamLength", transaction: 9, arguments: [.string("x")])
                    var out = ByteBuffer()
                    ChunkEncoder(chunkSize: size).encode(command.message(streamID: 0), chunkStream: 3, into: &out)
                    await client.send(bytes: out)
                    try await eventually("the answer") { client.results[9] == .number(0) }
                    await client.close()
                }
            }
        }

        @Test func windowSizes() async throws {
            try await UnboundServer.withCanary { server in
                let client = try await RawClient.connected(server.port)
                client.send(ControlMessage.windowAcknowledgementSize(0).message, ControlMessage.windowAcknowledgementSize(1).message)
                for value in 0..<20 { try await client.run { $0.ping(UInt32(value)) } }
                // Each read now fills the window: it is acknowledged once, and no more than that.
                try await eventually("the pongs") { client.outputs.contains(.pong(19)) }
                let acknowledgements = client.controls.count { if case .acknowledgement = $0 { true } else { false } }
                #expect((1...40).contains(acknowledgements))
                client.send(ControlMessage.setPeerBandwidth(0, .hard).message, ControlMessage.setPeerBandwidth(1, .soft).message)
                try await client.run { $0.ping(99) }
                try await eventually("the last pong") { client.outputs.contains(.pong(99)) }
                await client.close()
                try await server.expectConnections(2)
            }
        }

        @Test func shortControlMessages() async throws {
            try await UnboundServer.withCanary { server in
                for type in 1...6 {
                    for payload: [UInt8] in [[], [0], [0, 0, 0]] {
                        let client = try await RawClient.connected(server.port)
                        client.send(MessageType(rawValue: UInt8(type)), payload, on: 0)
                        try await server.expectClosed(client, .protocolError)
                    }
                }
                // Unknown kinds of messages are harmless, whatever they contain.
                let client = try await RawClient.connected(server.port)
                for type: UInt8 in [0, 7, 10, 13, 16, 19, 21, 23, 255] { client.send(MessageType(rawValue: type), [1, 2, 3], on: 0) }
                client.send(.commandAMF0, [], on: 0)
                client.send(.userControl, [0, 99], on: 0)
                client.send(ControlMessage.abort(chunkStream: 4_000_000_000).message)
                try await client.run { $0.ping(7) }
                try await eventually("the pong") { client.outputs.contains(.pong(7)) }
                await client.close()
            }
        }

        /// Every write ends one byte into the next message: the server's buffer is never empty.
        @Test func neverAtAMessageBoundary() async throws {
            try await UnboundServer.withCanary { server in
                let client = try await RawClient.publishing(server.port, "shifted")
                var message = ByteBuffer()
                let audio = Message(type: .audio, streamID: 1, timestamp: 0, payload: ByteBuffer(bytes: SyntheticTag.audio(0, bytes: 500)))
                ChunkEncoder(chunkSize: 60_000).encode(audio, chunkStream: 4, into: &message)
                let whole = Array(message.readableBytesView)
                await client.send(bytes: [whole[0]])
                for _ in 0..<2_000 { await client.send(bytes: whole[1...] + [whole[0]]) }
                await client.send(bytes: Array(whole[1...]))
                try await server.wait("streams") { list in
                    list["list"].list.contains { $0["name"].string == "shifted" && $0["bytesIn"].int == 2_001 * 500 }
                }
                await client.close()
            }
        }
    }
}
