import EarshotServer
import RTMP
import Testing

@testable import Support

/// The server pings clients that may have vanished, every half minute. A pong would hold back a publisher's next frame.
@Suite struct PingTests {
    @Test(.timeLimit(.minutes(3))) func whoPushesIsLeftAlone() async throws {
        try await TestServer.run { server in
            let port = server.addresses.rtmp.port
            let camera = try await RawClient.publishing(port, "r1")
            camera.send(.video, SyntheticTag.videoHeader)
            let viewer = try await RawClient.connected(port, app: "live")
            try await viewer.play("r1", on: viewer.createStream())
            let start = ContinuousClock.now
            var number = 0
            while !viewer.isPinged, ContinuousClock.now - start < .seconds(90) {
                camera.send(
                    .video, SyntheticTag.video(number, isKeyframe: number % 10 == 0, bytes: 500), timestamp: UInt32(number * 100))
                number += 1
                try await Task.sleep(for: .milliseconds(100))
            }
            #expect(viewer.isPinged && !camera.isPinged)
            // The camera's connection is as old: a ping to it would have been sent by now.
            #expect(!viewer.isClosed && !camera.isClosed)
            for client in [camera, viewer] { await client.close() }
        }
    }
}

/// A client that writes small frames with Nagle's algorithm, as most do: the server's messages must not hold them up.
@Suite struct AcknowledgementTests {
    @Test(.timeLimit(.minutes(3))) func wordsDoNotHoldFramesBack() async throws {
        try await TalkRoom.run { room in
            var options = RawClient.Options()
            options.waitsForAcknowledgement = true
            let ann = try await room.client(options)
            // The server acknowledges every 3,000 bytes: fifteen times in all.
            ann.send(ControlMessage.windowAcknowledgementSize(3_000).message)
            try await ann.publish("r1/ann", on: ann.createStream())
            // The same without acknowledgements, at the same times: delays of both are the machine's.
            let ben = try await room.client(options)
            try await ben.publish("r1/ben", on: ben.createStream())
            let (ear, other) = (try await room.listener("ann"), try await room.listener("ben"))
            let start = ContinuousClock.now
            for number in 1...240 {
                try await Task.sleep(until: start + .milliseconds(number * 20), tolerance: .zero, clock: .continuous)
                for client in [ann, ben] {
                    client.send(.audio, SyntheticTag.audio(number, bytes: 180), timestamp: UInt32(number * 20))
                }
            }
            try await eventually("the last frames") {
                [ear, other].allSatisfy { $0.media().contains { $0.message.timestamp == 4_800 } }
            }
            let told = ann.controls.count { if case .acknowledgement = $0 { true } else { false } }
            // A frame that waits for an acknowledgement is at least 40 ms late.
            let usual = Dictionary(other.media().map { ($0.message.timestamp, $0.at) }) { first, _ in first }
            let delays = ear.media().compactMap { received in usual[received.message.timestamp].map { received.at - $0 } }
            let late = delays.count { $0 > .milliseconds(25) }
            // What the machine holds up, it holds up in both.
            let early = delays.count { $0 < .milliseconds(-25) }
            // Each acknowledgement would hold up one frame or two.
            #expect(told >= 12 && late - early < told / 2, "\(late) late and \(early) early after \(told) acknowledgements")
            for client in [ann, ben, ear, other] { await client.close() }
        }
    }
}

extension RawClient {
    fileprivate var isPinged: Bool { self.controls.contains { if case .userControl(.pingRequest) = $0 { true } else { false } } }
}
