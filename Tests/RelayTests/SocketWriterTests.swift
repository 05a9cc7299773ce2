import Media
import NIOCore
import Testing

@testable import Relay

/// The server's socket writer on real channels, with small kernel buffers. It writes straight to the socket, and through the channel as
/// over TLS.
@Suite struct SocketWriterTests {
    /// An answer; its kind distinguishes it from the stream's messages.
    private static func answer(_ id: Int) throws -> ByteBuffer {
        let frame = try Make.script(id, at: 0)
        var bytes = [UInt8](repeating: 0, count: TestEncoder().encodedLength(frame))
        _ = bytes.withUnsafeMutableBytes { TestEncoder().encode(frame, into: $0) }
        return ByteBuffer(bytes: bytes)
    }

    /// A frame; every 60th is many times the kernel's buffer.
    private static func frame(_ number: Int) throws -> Frame {
        number % 60 == 0
            ? try Make.key(number, at: Int64(number) * 5, bytes: 150_000) : try StreamCheck.Load.frame(number, stream: 0, of: 1)
    }

    /// Viewers on both loops read in pieces of any size, with answers in between. Every fourth leaves in the middle of a message.
    @Test func everyByteInOrder() async throws {
        try await RelayHarness.run { relay in
            let live = try await relay.live()
            let stream = live.stream
            let whole = try await relay.join(stream, on: relay.home)
            var viewers: [(connection: WriterConnection, peer: Peer, loop: RelayLoop, streamID: UInt32)] = []
            for index in 0..<16 {
                let loop = relay.loops[index % 2]
                let streamID: UInt32 = index % 8 < 4 ? 1 : 5
                let (connection, peer) = try WriterConnection.open(on: loop, isDirect: index % 4 < 2)
                try await relay.on(loop) { _ in connection.play(stream, streamID: streamID) }
                viewers.append((connection, peer, loop, streamID))
            }
            try await relay.settle()
            try await relay.publish(try StreamCheck.Load.headers(stream: 0), to: live)
            var answers = 0
            for number in 1...240 {
                try await relay.publish([try Self.frame(number)], to: live)
                for (index, viewer) in viewers.enumerated() {
                    let connection = viewer.connection
                    if number % 16 == 0 {
                        let answer = try Self.answer(number)
                        try await relay.on(viewer.loop) { _ in connection.say(answer) }
                    }
                    if number % 200 == 0, index % 4 == 3 { viewer.peer.close() }
                    viewer.peer.read(1 + (index * 37 + number) % 700 * (index % 3 + 1))
                }
                if number % 16 == 0 { answers += 1 }
            }
            let expected = try await relay.received(whole)
            let ids = (1...answers).map { $0 * 16 }
            for (index, viewer) in viewers.enumerated() {
                let (connection, peer) = (viewer.connection, viewer.peer)
                if index % 4 != 3 {
                    let size =
                        expected.reduce(0) { $0 + TestEncoder.headerLength + $1.payload.readableBytes }
                        + ids.count * (try Self.answer(0).readableBytes)
                    while peer.bytes.count < size, peer.read(64 << 10, waitMs: 60_000) > 0 {}
                    let messages = try peer.bytes.messages()
                    #expect(messages.filter { $0.kind != .data } == expected.map { $0.with(streamID: viewer.streamID) }, "viewer \(index)")
                    #expect(messages.filter { $0.kind == .data }.map(\.id) == ids, "viewer \(index)")
                    let (written, cuts) = try await relay.on(viewer.loop) { _ in (connection.writer?.bytesWritten, connection.cuts) }
                    #expect(written == UInt64(peer.bytes.count) && cuts > 0, "viewer \(index)")
                }
                try await relay.on(viewer.loop) { _ in connection.context?.close(promise: nil) }
            }
            try await relay.settle()
            #expect(stream.viewerCount == 1)
        }
    }

    /// A write that finds its connection gone reads the connection's last bytes from within. Their handler publishes more than the ring
    /// holds, while another viewer is about to be sent the messages that this evicts.
    @Test(arguments: [false, true]) func publishesFromWithinAWrite(_ isDirect: Bool) async throws {
        var policy = RelayPolicy()
        policy.ring.totalBytes = 32 << 10
        try await RelayHarness.run(policy) { relay in
            let live = try await relay.live()
            let stream = live.stream
            let (goer, goersPeer) = try WriterConnection.open(on: relay.home, isDirect: isDirect, kernelBytes: 256 << 10)
            let (stalled, peer) = try WriterConnection.open(on: relay.home, isDirect: true)
            try await relay.on(relay.home) { _ in
                for connection in [goer, stalled] { connection.play(stream) }
            }
            let frames = [try Make.audio(1, at: 0, bytes: 20_000), try Make.audio(2, at: 20), try Make.audio(3, at: 40)]
            let flood = try (10..<510).map { try Make.audio($0, at: 60) }
            try await relay.publishSingly(Array(frames[..<2]), to: live)
            #expect(try await relay.on(relay.home) { _ in goer.isReady && stalled.cuts == 1 && !stalled.isReady })
            // In one task: the loop polls its sockets only after the pump, which runs next.
            try await relay.on(relay.home) { _ in
                goer.onRead = { RelayLoop.publish(flood, to: live.stream, token: live.token) }
                goersPeer.say(1)
                goersPeer.close()
                RelayLoop.publish([frames[2]], to: live.stream, token: live.token)
            }
            try await relay.settle()
            #expect(stream.viewerCount == 1)
            let size = TestEncoder.headerLength + frames[0].payload.readableBytes
            while peer.bytes.count < size, peer.read(64 << 10, waitMs: 60_000) > 0 {}
            try await relay.settle()
            let last = try Make.audio(1_000, at: 80)
            try await relay.publish([last], to: live)
            // By now the loop has written it, and anything it would have written wrongly.
            while peer.read(64 << 10) > 0 {}
            #expect(try peer.bytes.messages() == [frames[0], last].received(), "what it was too late for is left out")
            try await relay.on(relay.home) { _ in stalled.context?.close(promise: nil) }
            try await relay.settle()
        }
    }

    /// A connection closed in the middle of a message. Its peer still gets the rest, and the last answer.
    @Test(arguments: [false, true]) func lastWords(_ isDirect: Bool) async throws {
        try await RelayHarness.run { relay in
            let live = try await relay.live()
            let stream = live.stream
            let (connection, peer) = try WriterConnection.open(on: relay.home, isDirect: isDirect)
            try await relay.on(relay.home) { _ in connection.play(stream) }
            let frames = [try Make.key(1, at: 0), try Make.inter(2, at: 20, bytes: 600_000)]
            try await relay.publish(frames, to: live)
            #expect(try await relay.on(relay.home) { _ in !connection.isReady && connection.cuts == 1 })
            let answer = try Self.answer(7)
            try await relay.on(relay.home) { _ in
                connection.stop()
                connection.say(answer)
                connection.writer?.isEnding = true
                connection.closeWhenSent(within: .minutes(5))
            }
            while !peer.hasEnded, peer.read(64 << 10, waitMs: 60_000) > 0 {}
            #expect(peer.hasEnded)
            let messages = try peer.bytes.messages()
            #expect(Array(messages.prefix(2)) == frames.received() && messages.dropFirst(2).map(\.id) == [7])
        }
    }

    /// With nothing left to send, the connection closes at once.
    @Test(arguments: [false, true]) func closesAtOnce(_ isDirect: Bool) async throws {
        try await RelayHarness.run { relay in
            let (connection, peer) = try WriterConnection.open(on: relay.home, isDirect: isDirect)
            try await relay.on(relay.home) { _ in connection.closeWhenSent() }
            try await relay.settle()
            #expect(peer.read(1, waitMs: 60_000) == 0 && peer.hasEnded)
            #expect(try await relay.on(relay.home) { _ in connection.context == nil })
        }
    }

    /// The channel fails its pending writes before it reports that it is closed.
    @Test func nothingStartsOnAClosedSocket() async throws {
        try await RelayHarness.run { relay in
            let (connection, peer) = try WriterConnection.open(on: relay.home, isDirect: true)
            let wasWaiting = try await relay.on(relay.home) { _ in
                connection.say(ByteBuffer(repeating: 1, count: 300 << 10))
                let isReady = connection.isReady
                connection.context?.close(promise: nil)
                return !isReady
            }
            #expect(wasWaiting)
            #expect(try await relay.on(relay.home) { _ in !connection.endedWithOpenLine && !connection.isReady })
            peer.close()
        }
    }

    /// Bytes given to the channel before the writer existed are not overtaken.
    @Test func waitsForTheChannel() async throws {
        try await RelayHarness.run { relay in
            let live = try await relay.live()
            let stream = live.stream
            let (connection, peer) = try WriterConnection.open(on: relay.home, isDirect: true) { context in
                context.writeAndFlush(NIOAny(ByteBuffer(repeating: 1, count: 300 << 10)), promise: nil)
            }
            let lines = try await relay.on(relay.home) { _ in
                let before = connection.line?.descriptor ?? -1
                connection.writer?.waitForChannel()
                connection.play(stream)
                return (before, connection.line?.descriptor ?? -1)
            }
            #expect(lines.0 >= 0 && lines.1 < 0)
            let frames = [try Make.audio(1, at: 0), try Make.audio(2, at: 20)]
            try await relay.publish([frames[0]], to: live)
            while peer.bytes.count < 300 << 10, peer.read(64 << 10, waitMs: 60_000) > 0 {}
            try await relay.settle()
            #expect(try await relay.on(relay.home) { _ in (connection.line?.descriptor ?? -1) >= 0 })
            try await relay.publish([frames[1]], to: live)
            // By now the loop has written it.
            while peer.read(64 << 10) > 0 {}
            #expect(peer.bytes.prefix(300 << 10).allSatisfy { $0 == 1 })
            #expect(try Array(peer.bytes.dropFirst(300 << 10)).messages() == frames.received())
            try await relay.on(relay.home) { _ in connection.context?.close(promise: nil) }
            try await relay.settle()
        }
    }
}

extension Received {
    fileprivate func with(streamID: UInt32) -> Received {
        var copy = self
        copy.streamID = streamID
        return copy
    }
}
