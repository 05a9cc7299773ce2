import Foundation
import RTMP
import Testing

@testable import EarshotServer
@testable import Playback
@testable import Support

/// WebSocket players that stay long, and those that send too much.
@Suite struct WebSocketFrameRateTests {
    /// Ten frames a second for three days, and a burst of 900 every hour.
    @Test func aLongStayIsNoFlood() {
        var rate = WebSocketFrameRate()
        var isFlood = false
        for second in Int64(0)..<259_200 {
            if !rate.admits(second % 3_600 == 0 ? 900 : 10, nowMs: second * 1_000) { isFlood = true }
        }
        #expect(!isFlood)
    }

    @Test(arguments: [(1_001, 0), (300, 1_000), (30, 100)] as [(Int, Int64)]) func aFloodIsOne(frames: Int, everyMs: Int64) {
        var rate = WebSocketFrameRate()
        #expect((0..<100).contains { !rate.admits(frames, nowMs: Int64($0) * everyMs) })
    }

    @Test func whatAPlayerMaySend() async throws {
        try await TestServer.run { server in
            let publisher = try await RawClient.publishing(server.addresses.rtmp.port, "cam")
            publisher.send(.video, SyntheticTag.videoHeader)
            publisher.send(.video, SyntheticTag.video(0, isKeyframe: true, bytes: 100))
            let viewer = try await WebSocketClient.open(server.addresses.http.port, "/live/cam.flv")
            for _ in 0..<900 { try await viewer.send(9, "x".utf8) }
            try await eventually("900 pongs") { try viewer.all.count { $0.opcode == 10 } == 900 }
            #expect(!viewer.socket.isClosed)
            for _ in 0..<10 {
                let frames = (0..<500).flatMap { _ in WebSocketReaderTests.frame(10, []) }
                // The server may have closed it already.
                guard (try? await viewer.socket.send(frames)) != nil else { break }
            }
            try await eventually("the end") { viewer.socket.isClosed }
            #expect(await server.lines.comes("reason=protocol_error", "more than 200 WebSocket frames a second"))
            await publisher.close()
        }
    }
}
