import Media
import NIOCore
import Testing

@testable import Relay

/// The server's socket writer on real channels and sockets whose kernel takes little: straight to the socket, and through the channel as
/// over TLS.
@Suite struct SocketWriterTests {
    /// Answers are told from the streams' messages by their kind.
    private static func answer(_ id: Int) throws -> ByteBuffer {
        let frame = try Make.script(id, at: 0)
        var bytes = [UInt8](repeating: 0, count: TestEncoder().encodedLength(frame))
        _ = bytes.withUnsafeMutableBytes { TestEncoder().encode(frame, into: $0) }
        return ByteBuffer(bytes: bytes)
    }

    /// Some that are many times what the kernel takes.
    private static func frame(_ number: Int) throws -> Frame {
        number % 60 == 0
            ? try Make.key(number, at: Int64(number) * 5, bytes: 150_000) : try StreamCheck.Load.frame(number, stream: 0, of: 1)
    }

    /// Viewers on both loops that read in pieces of any size, with answers to each in between; every fourth goes in the middle of a message.
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
                    while peer.bytes.count < size, peer.read(64 << 10, waitMs: 5_000) > 0 {}
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
}

extension Received {
    fileprivate func with(streamID: UInt32) -> Received {
        var copy = self
        copy.streamID = streamID
        return copy
    }
}
