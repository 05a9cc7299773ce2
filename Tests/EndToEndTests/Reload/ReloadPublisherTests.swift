import Media
import NIOCore
import RTMP
import ServerTestSupport
import TestSupport
import Testing

/// What publishers are told after a reload.
@Suite struct ReloadPublisherTests {
    /// Pictures of one second need two: the uplink is too slow, and the publisher hears so from now on.
    @Test(.timeLimit(.minutes(3))) func advice() async throws {
        try await ReloadingServer.run { server in
            let client = try await RawClient.publishing(server.rtmpPort, "cam1")
            let sender = PacedSender {
                client.send(.video, SyntheticTag.videoHeader)
                var number = 0
                return {
                    defer { number += 1 }
                    let picture = SyntheticTag.video(number, isKeyframe: number % 25 == 0, bytes: 2_000)
                    return PacedSender.Step(due: .milliseconds(number * 80)) { [number] _ in
                        client.send(.video, picture, timestamp: UInt32(number * 40))
                    }
                }
            }
            func isAdvised() -> Bool {
                client.received.contains {
                    $0.message.type == .dataAMF0 && $0.message.payload.readableBytesView.firstRange(of: "onUplink".utf8) != nil
                }
            }
            try await server.wait("streams") { streams in
                streams["list"][0]["health"]["reasons"].list.contains { $0["code"].string == "media_behind_clock" }
            }
            // It would have come with the verdict.
            #expect(!isAdvised())
            try await server.apply(["rtmp.adviseUplink": "true"])
            try await eventually("the advice") { isAdvised() }
            sender.stop()
            _ = try await sender.ended()
            await client.close()
        }
    }

    @Test func drain() async throws {
        try await ReloadingServer.run { server in
            try await server.apply(["drain.reconnectTo": "rtmp://other.example/live"])
            let able = try await RawClient.shaken(server.rtmpPort)
            try await able.connect(app: "live", extra: [AMF0Property(name: "capsEx", value: 1)])
            try await able.publish("cam1", on: able.createStream())
            able.send(.video, SyntheticTag.videoHeader)
            able.send(.video, SyntheticTag.video(1, isKeyframe: true, bytes: 2_000))
            try await server.waitForPush()
            #expect(try await server.call("POST", "server/drain", #"{"timeout":60}"#).status / 100 == 2)
            try await eventually("the request") { able.statusCodes.contains(StatusCode.connectReconnectRequest) }
            #expect(
                able.received.contains { $0.message.payload.readableBytesView.firstRange(of: "rtmp://other.example/live".utf8) != nil })
            await able.close()
        }
    }
}
