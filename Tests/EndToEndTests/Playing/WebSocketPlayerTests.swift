import Foundation
import RTMP
import ServerTestSupport
import TestSupport
import Testing

@testable import EarshotServer
@testable import Playback
@testable import Support

/// Messages that a WebSocket player may send to a live server.
@Suite struct WebSocketPlayerTests {
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
                let frames = (0..<500).flatMap { _ in ClientFrame.bytes(10, []) }
                // The server may have closed it already.
                guard (try? await viewer.socket.send(frames)) != nil else { break }
            }
            try await eventually("the end") { viewer.socket.isClosed }
            #expect(await server.lines.comes("reason=protocol_error", "more than 200 WebSocket frames a second"))
            await publisher.close()
        }
    }
}
