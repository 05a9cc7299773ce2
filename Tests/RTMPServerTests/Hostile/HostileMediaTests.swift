import APITestSupport
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
        @Test func emptyAndOneByteTags() async throws {
            try await UnboundServer.withCanary { server in
                let harmless = try await RawClient.publishing(server.port, "empty")
                harmless.send(.audio, [])
                harmless.send(.video, [])
                // Speex and Sorenson have nothing after their first byte that a relay must read.
                harmless.send(.audio, [0xB6])
                harmless.send(.video, [0x22])
                harmless.send(.dataAMF0, [])
                harmless.send(.dataAMF0, [2])
                harmless.send(.audio, SyntheticTag.audio(1, bytes: 40))
                try await server.wait("streams") { list in
                    list["list"].list.contains { $0["name"].string == "empty" && ($0["bytesIn"].int ?? 0) >= 42 }
                }
                #expect(!harmless.isClosed)
                await harmless.close()
                // No room for a header: as good as empty, however many come.
                let short = try await RawClient.publishing(server.port, "byte")
                let bytes: [(MessageType, UInt8)] = [(.video, 0x17), (.video, 0x27), (.audio, 0xAF), (.video, 0x57), (.video, 0x2C)]
                for _ in 0..<100 { for (type, byte) in bytes { short.send(type, [byte]) } }
                try await server.pass(short)
                #expect(!short.isClosed && server.skipped == 500)
                await short.close()
            }
        }

        @Test func enhancedHeaders() async throws {
            try await UnboundServer.withCanary { server in
                let hvc1 = Array("hvc1".utf8)
                let malformed: [(MessageType, [UInt8])] = [
                    (.video, [0x90]),  // no FourCC
                    (.video, [0x90, 0x68, 0x76]),
                    (.video, [0x91] + hvc1 + [0, 0]),  // no composition time
                    (.video, [0x97]),  // ModEx without a size
                    (.video, [0x97, 3, 0, 0]),  // ModEx over the end
                    (.video, [0x97, 255, 0xFF, 0xFF, 0]),  // 64 KiB of ModEx
                    (.video, [0x97] + [UInt8](repeating: 0, count: 4) + hvc1),  // a nanosecond offset of one byte
                    (.video, [0x97, 2, 0xFF, 0xFF, 0xFF, 0x01] + hvc1),  // sixteen million nanoseconds
                    (.video, [0x97] + (0..<40).flatMap { _ in [UInt8](arrayLiteral: 2, 0, 0, 0, 0x07) }),  // ModEx without end
                    (.video, [0x96]),  // multitrack without a type
                    (.video, [0x96, 0x16]),  // multitrack in multitrack
                    (.video, [0x96, 0x11] + hvc1 + [0, 0xFF, 0xFF, 0xFF]),  // a track longer than its message
                    (.video, [0x96, 0x21] + hvc1),  // no track
                    (.audio, [0x90]),
                    (.audio, [0x95, 0x11] + Array("Opus".utf8) + [0, 0, 1]),
                    (.audio, [0x97, 0]),
                ]
                // Each is skipped, and the next good message goes on.
                let client = try await RawClient.publishing(server.port, "enhanced")
                for (type, payload) in malformed { client.send(type, payload) }
                client.send(.audio, SyntheticTag.audio(1, bytes: 40))
                try await server.wait("streams") { list in
                    list["list"].list.contains { $0["name"].string == "enhanced" && $0["bytesIn"].int == 40 }
                }
                #expect(!client.isClosed && server.skipped == UInt64(malformed.count))
                // What sends nothing else is ended.
                for _ in 0..<255 { client.send(.video, malformed[1].1) }
                client.send(.audio, SyntheticTag.audio(2, bytes: 40))
                for _ in 0..<255 { client.send(.video, malformed[1].1) }
                try await server.pass(client)
                #expect(!client.isClosed)
                client.send(.video, malformed[1].1)
                try await server.expectClosed(client, .malformedMedia)
                // Unknown packet types and codecs, as of a later specification, are relayed.
                let future = try await RawClient.publishing(server.port, "future")
                future.send(.video, [0x9F, 1, 2, 3])
                future.send(.video, [0x90] + Array("zzzz".utf8) + [1])
                future.send(.audio, [0x9C, 9])
                try await server.wait("streams") { list in
                    list["list"].list.contains { $0["name"].string == "future" && $0["bytesIn"].int == 12 }
                }
                #expect(!future.isClosed)
                await future.close()
            }
        }

        @Test func manyHeaders() async throws {
            try await UnboundServer.withCanary { server in
                let client = try await RawClient.publishing(server.port, "headers")
                // Large headers for every possible set of tracks: the cache for joiners is bounded.
                for track in 0..<600 {
                    let id = UInt8(truncatingIfNeeded: track)
                    let next = UInt8(truncatingIfNeeded: track / 256 + 1 + track)
                    let body = [UInt8](repeating: id, count: 3_000)
                    let payload = [0x96, 0x10] + Array("hvc1".utf8) + [id, 0, 0x0B, 0xB8] + body + [next, 0, 0, 1, 7]
                    client.send(.video, payload, timestamp: UInt32(track))
                }
                client.send(.audio, SyntheticTag.audio(1, bytes: 20), timestamp: 600)
                try await server.wait("streams") { list in
                    list["list"].list.contains { $0["name"].string == "headers" && ($0["bytesIn"].int ?? 0) > 600 * 3_000 }
                }
                let viewer = try await server.player(of: "headers")
                client.send(.audio, SyntheticTag.audio(2, bytes: 20), timestamp: 700)
                try await eventually("the live message") { viewer.media().contains { SyntheticTag.number($0.message) == 2 } }
                #expect(viewer.media().reduce(0) { $0 + $1.message.payload.readableBytes } < 2 << 20)
                await viewer.close()
                await client.close()
            }
        }
    }
}
