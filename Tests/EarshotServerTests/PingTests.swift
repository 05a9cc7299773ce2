import EarshotServer
import RTMP
import Testing

/// Who is pinged, every half minute: who may have gone without a word. A pong would hold the next frame of somebody who pushes back.
@Suite struct PingTests {
    @Test(.timeLimit(.minutes(2))) func whoPushesIsLeftAlone() async throws {
        try await TestServer.run { server in
            let port = server.addresses.rtmp.port
            let camera = try await RawClient.publishing(port, "r1")
            camera.send(.video, SyntheticTag.videoHeader)
            let viewer = try await RawClient.connected(port, app: "live")
            try await viewer.play("r1", on: viewer.createStream())
            let start = ContinuousClock.now
            var number = 0
            while !viewer.isPinged, ContinuousClock.now - start < .seconds(45) {
                camera.send(
                    .video, SyntheticTag.video(number, isKeyframe: number % 10 == 0, bytes: 500), timestamp: UInt32(number * 100))
                number += 1
                try await Task.sleep(for: .milliseconds(100))
            }
            #expect(viewer.isPinged && !camera.isPinged)
            // Its connection is as old: were it pinged, it would have been by now.
            #expect(!viewer.isClosed && !camera.isClosed)
            for client in [camera, viewer] { await client.close() }
        }
    }
}

extension RawClient {
    fileprivate var isPinged: Bool { self.controls.contains { if case .userControl(.pingRequest) = $0 { true } else { false } } }
}
