import Foundation
import NIOCore
import RTMP
import RTMPTestSupport
import Relay
import ServerTestSupport
import Support
import TestSupport
import Testing

@testable import EarshotServer
@testable import ServerConfiguration
@testable import Streaming

/// Publishers that send before they are admitted, and frames of every size.
@Suite struct BeforePublishClientsTests {
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

    private static func video(_ number: Int, isKeyframe: Bool = false, bytes: Int) -> Message {
        Message(
            type: .video, streamID: 1, timestamp: UInt32(number * 20),
            payload: ByteBuffer(bytes: SyntheticTag.video(number, isKeyframe: isKeyframe, bytes: bytes)))
    }

    /// Holds the hook's answer until the test opens the gate.
    private actor Gate {
        private var isOpen = false
        private var waiting: [CheckedContinuation<Void, Never>] = []

        func pass() async {
            guard !self.isOpen else { return }
            await withCheckedContinuation { self.waiting.append($0) }
        }

        func open() {
            self.isOpen = true
            for one in self.waiting { one.resume() }
            self.waiting = []
        }
    }

    /// Bytes that the server has read from a client when it stops reading: twenty looks in a row find the same.
    private static func bytesUntilItStops(reading client: RawClient, _ server: TestServer) async throws -> Int {
        var looks = (bytes: 0, same: 0)
        try await eventually("the server to stop reading") {
            let row = try await server.api("sessions")["list"].list.first { $0["address"].string == client.address }
            let bytes = row?["bytesIn"].int ?? 0
            looks = bytes == looks.bytes && bytes > 10_000 ? (bytes, looks.same + 1) : (bytes, 0)
            return looks.same == 20
        }
        return looks.bytes
    }

    /// While the hook delays its answer, five megabytes arrive, a keyframe of 200 KB first.
    /// The server reads a part, waits, and loses nothing.
    @Test func aSlowHookLosesNothing() async throws {
        let gate = Gate()
        try await ScriptedServer.run { _ in
            await gate.pass()
            return .status(200, "0")
        } _: { hook in
            try await TestServer.run({
                $0.outbound.allowPrivate = CIDR.loopback
                $0.hooks.onPublish = "http://127.0.0.1:\(hook.port)/"
                $0.hooks.timeoutMs = 60_000
                $0.relay.maxBehindMs = 60_000
                $0.relay.skipBehindMs = 50_000
            }) { server in
                let viewer = try await server.player(of: "cam")
                let publisher = try await RawClient.connected(server.port)
                let id = try await publisher.createStream()
                try await publisher.run { $0.publish("cam", on: id) }
                try await eventually("the question") { hook.requests.count == 1 }
                let header = Message(type: .video, streamID: 1, payload: ByteBuffer(bytes: SyntheticTag.videoHeader))
                let frames = [Self.video(0, isKeyframe: true, bytes: 200_000)] + (1..<481).map { Self.video($0, bytes: 10_000) }
                async let sent = publisher.send(bytes: Self.encoded([header] + frames))
                let read = try await Self.bytesUntilItStops(reading: publisher, server)
                #expect(read > 200 << 10 && read < 290 << 10)
                #expect(server.server.parts.memory.ledger.used < 400 << 10)
                #expect(!publisher.isClosed && viewer.media().isEmpty)
                await gate.open()
                #expect(await sent)
                try await eventually("every frame") { viewer.media().count == 1 + frames.count }
                #expect(viewer.media().compactMap { SyntheticTag.number($0.message) } == Array(0..<481))
                #expect(!publisher.isClosed)
                for client in [publisher, viewer] { await client.close() }
            }
        }
    }

    /// A client sends all and leaves while its publish is decided. The channel then delivers what the kernel holds, even with reads off.
    @Test func goingWhileItIsDecidedHoldsLittle() async throws {
        let gate = Gate()
        try await ScriptedServer.run { _ in
            await gate.pass()
            return .status(200, "0")
        } _: { hook in
            try await TestServer.run({
                $0.outbound.allowPrivate = CIDR.loopback
                $0.hooks.onPublish = "http://127.0.0.1:\(hook.port)/"
                $0.hooks.timeoutMs = 60_000
                // Less than the kernel's receive buffer: the server notices the end only behind these bytes.
                $0.limits.messageBytesBeforePublish = 16 << 10
                $0.limits.bytesBeforePublish = 16 << 10
            }) { server in
                let publisher = try await RawClient.connected(server.port)
                let id = try await publisher.createStream()
                try await publisher.run { $0.publish("cam", on: id) }
                try await eventually("the question") { hook.requests.count == 1 }
                await publisher.send(bytes: Self.encoded((0..<3).map { Self.video($0, isKeyframe: true, bytes: 10_000) }))
                _ = try await Self.bytesUntilItStops(reading: publisher, server)
                await publisher.send(bytes: Self.encoded((3..<6).map { Self.video($0, isKeyframe: true, bytes: 10_000) }))
                try await publisher.closeOutput()
                try await server.expectClosed(publisher, .inboundFlood)
                #expect(await server.lines.comes("remote=\(publisher.address) ", "(limits.bytesBeforePublish)"))
                await gate.open()
                try await server.wait("sessions") { $0["total"].int == 0 }
                try await eventually("its memory") { server.server.parts.memory.ledger.used < 64 << 10 }
            }
        }
    }
}
