import LibC
import Media
import Testing

@testable import Relay

/// Viewers on real sockets, half of them served by the pump's direct line. Whatever the kernel accepts at a time and whoever leaves, the
/// others get what a viewer without a socket gets, and their bytes are counted.
@Suite struct DirectLineTests {
    /// `@unchecked Sendable`: touched on its loop only.
    private final class Viewers: @unchecked Sendable {
        var sinks: [SocketSink] = []
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 16)
        deinit { self.buffer.deallocate() }
    }

    /// A single byte that the kernel accepts is sent and counted.
    @Test func aByteCounts() throws {
        var ends: [CInt] = [-1, -1]
        try #require(socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0, &ends) == 0)
        defer { for end in ends { close(end) } }
        let line = DirectLine()
        var byte: UInt8 = 7
        let sent = withUnsafeMutableBytes(of: &byte) { bytes in
            withUnsafeTemporaryAllocation(of: IOVector.self, capacity: 1) { vectors in
                vectors.initialize(repeating: IOVector(iov_base: bytes.baseAddress, iov_len: 1))
                return line.send(UnsafeBufferPointer(vectors), to: ends[0])
            }
        }
        #expect(sent == 1 && line.bytesWritten == 1)
    }

    @Test func everyViewerGetsTheSame() async throws {
        try await RelayHarness.run { relay in
            let live = try await relay.live()
            let stream = live.stream
            let whole = try await relay.join(stream, on: relay.home)
            let viewers = Viewers()
            try await relay.on(relay.home) { home in
                for index in 0..<24 {
                    let check = StreamCheck(stream: 0, of: 1, streamID: 1)
                    let sink = try #require(SocketSink(home, hasLine: index % 2 == 0, check: check))
                    sink.play(stream, streamID: 1)
                    viewers.sinks.append(sink)
                }
            }
            try await relay.publish(try StreamCheck.Load.headers(stream: 0), to: live)
            for number in 1...240 {
                try await relay.publish([try StreamCheck.Load.frame(number, stream: 0, of: 1)], to: live)
                try await relay.on(relay.home) { home in
                    // Some always read, some rarely; every third one leaves.
                    for (index, sink) in viewers.sinks.enumerated() where number % (index % 5 * 7 + 1) == 0 {
                        try sink.turn(viewers.buffer)
                    }
                    let leaver = number / 8
                    if number % 8 == 0, leaver < viewers.sinks.count, leaver % 3 == 1 { viewers.sinks[leaver].close() }
                    if number % 32 == 0 { home.sweep() }
                }
            }
            let messages = try await relay.received(whole).count
            let bytes = try await relay.with(whole) { $0.bytes.count }
            try await relay.on(relay.home) { _ in
                for (index, sink) in viewers.sinks.enumerated() where sink.isOpen {
                    for _ in 0..<500 where sink.check.messages < messages { try sink.turn(viewers.buffer) }
                    #expect(
                        sink.check.messages == messages && sink.check.skips == 0, "viewer \(index): \(sink.check.messages) of \(messages)")
                    #expect(sink.viewer?.bytesSent == UInt64(bytes) && sink.viewer?.messagesSent == UInt64(messages))
                }
                let direct = viewers.sinks.filter { $0.isOpen && $0.line != nil }
                #expect(direct.count == 8 && direct.contains { $0.cuts > 0 }, "nothing was ever cut")
                for sink in direct {
                    let written = sink.line?.bytesWritten ?? 0
                    #expect(written > 0 && written <= UInt64(bytes))
                }
                for sink in viewers.sinks { sink.close() }
            }
        }
    }
}
