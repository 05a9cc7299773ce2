import Listening
import NIOCore
import RTMP
import RTMPTestSupport
import Relay
import ServerTestSupport
import TestSupport
import Testing

@testable import EarshotServer
@testable import RTMPServer
@testable import Streaming
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
    /// After each message to a publisher the kernel goes back to acknowledging its data at once. ``TalkDelayMeasurement`` measures the delay.
    @Test(.timeLimit(.minutes(3))) func wordsDoNotHoldFramesBack() async throws {
        try await TalkRoom.run { room in
            let ann = try await room.client(RawClient.Options())
            // The server acknowledges every 3,000 bytes.
            ann.send(ControlMessage.windowAcknowledgementSize(3_000).message)
            try await ann.publish("r1/ann", on: ann.createStream())
            func acknowledgements() -> Int { ann.controls.count { if case .acknowledgement = $0 { true } else { false } } }
            var told = 0
            for number in 1...240 {
                ann.send(.audio, SyntheticTag.audio(number, bytes: 180), timestamp: UInt32(number * 20))
                // The next frames would bring the kernel back by themselves: an acknowledgement is seen before them.
                try await Task.sleep(for: .milliseconds(20))
                guard acknowledgements() > told else { continue }
                told = acknowledgements()
                try await eventually("at once again after \(told) acknowledgements") {
                    await room.server.server.parts.acknowledgesAtOnce("talk/r1/ann")
                }
            }
            try await eventually("twelve acknowledgements") { acknowledgements() >= 12 }
            await ann.close()
        }
    }
}

extension ServerParts {
    /// Whether the kernel acknowledges what this stream's publisher sends at once.
    fileprivate func acknowledgesAtOnce(_ path: String) async -> Bool {
        for loop in self.streams.allLoops {
            let isAtOnce: Bool = await withCheckedContinuation { answer in
                loop.relay.run { _ in
                    var isAtOnce = false
                    _ = loop.close(.clientClosed, "") { connection in
                        if let publisher = connection as? RTMPConnection, publisher.snapshot().publishing.contains(path) {
                            isAtOnce = publisher.acknowledgesAtOnce
                        }
                        // Looked at, and left open.
                        return false
                    }
                    answer.resume(returning: isAtOnce)
                }
            }
            if isAtOnce { return true }
        }
        return false
    }
}

extension RTMPConnection {
    /// tcp(7), TCP_QUICKACK.
    fileprivate var acknowledgesAtOnce: Bool {
        let option = ChannelOptions.Types.SocketOption.tcpOption(.tcpQuickAcknowledgement)
        return (try? self.context?.channel.syncOptions?.getOption(option)) == 1
    }
}

extension RawClient {
    fileprivate var isPinged: Bool { self.controls.contains { if case .userControl(.pingRequest) = $0 { true } else { false } } }
}
