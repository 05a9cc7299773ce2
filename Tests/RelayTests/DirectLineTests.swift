import Glibc
import Media
import Testing

@testable import Relay

/// Viewers on real sockets, by the pump's short way: whatever the kernel takes at a time and whoever goes meanwhile, each gets what a viewer
/// without a socket gets.
@Suite struct DirectLineTests {
    /// A connection as the socket writer makes one: a socket with a small buffer, and what is left of a cut message.
    ///
    /// `@unchecked Sendable`: touched on its loop only.
    final class SocketSink: ViewerSink, @unchecked Sendable {
        let line: DirectLine? = DirectLine()
        private(set) var bytes: [UInt8] = []
        private(set) var viewer: Viewer?
        private(set) var cuts = 0
        private let loop: RelayLoop
        private let near: CInt
        private let far: CInt
        private var rest: [UInt8] = []

        init(_ loop: RelayLoop) {
            self.loop = loop
            var pair: [CInt] = [-1, -1]
            #expect(socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_NONBLOCK.rawValue), 0, &pair) == 0)
            (self.near, self.far) = (pair[0], pair[1])
            var size: CInt = 4_608
            #expect(setsockopt(self.near, SOL_SOCKET, SO_SNDBUF, &size, socklen_t(MemoryLayout<CInt>.size)) == 0)
            self.line?.open(self.near)
        }

        func play(_ stream: Relay.Stream) {
            let viewer = Viewer(stream: stream, streamID: 1, sink: self, nowMs: self.loop.nowMs)
            self.viewer = viewer
            self.loop.attach(viewer)
        }

        /// The connection is gone, and another may get its number at once.
        func close() {
            self.line?.shut()
            if let viewer = self.viewer { self.loop.detach(viewer) }
            self.viewer = nil
            Glibc.close(self.near)
            Glibc.close(self.far)
        }

        /// The peer reads all that there is; what waited goes on.
        func read() {
            while true {
                var buffer = [UInt8](repeating: 0, count: 8_192)
                let count = recv(self.far, &buffer, buffer.count, 0)
                guard count > 0 else { break }
                self.bytes += buffer[..<count]
            }
            guard !self.rest.isEmpty else { return }
            let sent = self.rest.withUnsafeBytes { send(self.near, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL)) }
            if sent > 0 { self.rest.removeFirst(sent) }
            guard self.rest.isEmpty, let viewer = self.viewer else { return }
            self.line?.open(self.near)
            self.loop.pump(viewer)
        }

        var isIdle: Bool { self.rest.isEmpty }
        var isReady: Bool { self.rest.isEmpty }

        func write(_ vectors: UnsafeBufferPointer<IOVector>, bytes: Int) -> Int {
            max(0, self.line?.send(vectors, to: self.near) ?? 0)
        }

        func finish(_ message: EncodedMessage, header: UnsafeRawBufferPointer, from offset: Int) {
            guard let start = message.start else { return }
            self.cuts += 1
            self.rest = Array(UnsafeRawBufferPointer(start: start + offset, count: message.length - offset))
            self.line?.shut()
        }

        func tell(_ viewer: Viewer, _ notice: StreamNotice) {}
        func fellTooFarBehind(_ viewer: Viewer, ms: Int64) {}
        func unsentBytes() -> Int { 0 }
        func setLowWater(_ bytes: Int) {}
    }

    @Test func everyViewerGetsTheSame() async throws {
        try await RelayHarness.run { relay in
            let live = try await relay.live()
            let stream = live.stream
            let whole = try await relay.join(stream, on: relay.home)
            let sinks = try await relay.on(relay.home) { home in
                let sinks = (0..<24).map { _ in SocketSink(home) }
                for sink in sinks { sink.play(stream) }
                return sinks
            }
            let staying = sinks.indices.filter { $0 % 3 != 1 }
            for (turn, frame) in try Make.stream(groups: 20, framesPerGroup: 12).enumerated() {
                try await relay.publish([frame], to: live)
                try await relay.on(relay.home) { home in
                    // Some read always, some rarely, some go.
                    for (index, sink) in sinks.enumerated() where sink.viewer != nil && turn % (index % 5 * 7 + 1) == 0 { sink.read() }
                    let leaver = turn / 8
                    if turn % 8 == 0, leaver < sinks.count, !staying.contains(leaver), sinks[leaver].viewer != nil { sinks[leaver].close() }
                    if turn % 32 == 0 { home.sweep() }
                }
            }
            try await relay.on(relay.home) { _ in
                for _ in 0..<2_000 { for index in staying { sinks[index].read() } }
            }
            let expected = try await relay.with(whole) { $0.bytes }
            try await relay.on(relay.home) { _ in
                for index in staying {
                    let sink = sinks[index]
                    #expect(sink.isIdle && sink.bytes == expected, "viewer \(index): \(sink.bytes.count) of \(expected.count) bytes")
                    #expect(sink.viewer?.bytesSent == UInt64(expected.count))
                    #expect(sink.viewer?.line?.bytesWritten ?? 0 <= UInt64(expected.count))
                }
                #expect(staying.contains { sinks[$0].cuts > 0 }, "nothing was ever cut")
                for index in staying { sinks[index].close() }
            }
        }
    }
}
