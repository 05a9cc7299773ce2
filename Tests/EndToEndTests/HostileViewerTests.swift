import EarshotServer
import NIOCore
import RTMP
import RTMPTestSupport
import ServerTestSupport
import Testing

@testable import ServerConfiguration
@testable import Support

extension Hostile {
    /// Viewers that read slowly or not at all.
    @Suite struct SlowViewers {
        /// A stream of about 2.4 Mbps: 25 frames a second of 12 KB with a keyframe each second, and audio.
        static func publish(_ client: RawClient) {
            client.send(.video, SyntheticTag.videoHeader)
            client.send(.audio, SyntheticTag.audioHeader)
            let count = Counter()
            client.channel.eventLoop.scheduleRepeatedTask(initialDelay: .zero, delay: .milliseconds(20)) { task in
                guard client.channel.isActive else { return task.cancel() }
                let number = count.next()
                if number % 2 == 0 {
                    client.send(
                        .video, SyntheticTag.video(number, isKeyframe: number % 50 == 0, bytes: 12_000), timestamp: UInt32(number * 20))
                } else {
                    client.send(.audio, SyntheticTag.audio(number, bytes: 200), timestamp: UInt32(number * 20))
                }
            }
        }

        @Test func neverReads() async throws {
            try await TestServer.withCanary({
                // The witness may be late as well, on a machine that stalls.
                $0.relay.maxBehindMs = 6_000; $0.relay.skipBehindMs = 5_000
            }) { server in
                let publisher = try await RawClient.publishing(server.port, "cam")
                Self.publish(publisher)
                let witness = try await server.player(of: "cam")
                var options = RawClient.Options()
                options.receiveBuffer = 16 << 10
                var stalled: [RawClient] = []
                for _ in 0..<5 {
                    let client = try await server.player(of: "cam", options)
                    try await client.stopReading()
                    stalled.append(client)
                }
                try await server.wait("counters") { $0["closed"]["too_slow"].int == 5 }
                for client in stalled {
                    try await client.startReading()
                    try await server.expectClosed(client, .tooSlow)
                }
                // The witness missed nothing.
                let numbers = witness.media().compactMap { SyntheticTag.number($0.message) }
                #expect(numbers == Array(numbers[0]..<numbers[0] + numbers.count))
                await witness.close()
                await publisher.close()
                try await server.expectConnections(2)
            }
        }

        @Test func readsAFifth() async throws {
            try await TestServer.withCanary({
                $0.relay.skipBehindMs = 500; $0.relay.maxBehindMs = 8_000
            }) { server in
                let publisher = try await RawClient.publishing(server.port, "cam")
                Self.publish(publisher)
                var options = RawClient.Options()
                options.receiveBuffer = 16 << 10
                // Reads 60 KB/s of 310.
                options.readBytes = 1_200
                let viewer = try await server.player(of: "cam", options)
                try await viewer.readSlowly(every: .milliseconds(20))
                try await server.wait("sessions") { list in
                    list["list"].list.contains { ($0["playing"][0]["framesSkipped"].int ?? 0) > 60 }
                }
                #expect(!viewer.isClosed)
                #expect(viewer.decodingError == nil)
                Self.judge(viewer.media().map(\.message))
                await viewer.close()
                await publisher.close()
            }
        }

        /// A slow viewer's messages are in order, whole, and resume at keyframes; audio has no gaps.
        private static func judge(_ messages: [Message]) {
            var last = -1
            var lastVideo: Int?
            var audio: [Int] = []
            var resumed = 0
            for message in messages {
                #expect(Int(message.timestamp) >= last, "timestamps never go back")
                last = Int(message.timestamp)
                guard let number = SyntheticTag.number(message) else {
                    let header = Array(message.payload.readableBytesView)
                    #expect([SyntheticTag.videoHeader, SyntheticTag.audioHeader].contains(header), "a message that was not sent")
                    continue
                }
                #expect(Int(message.timestamp) == number * 20)
                guard message.type == .video else {
                    audio.append(number)
                    continue
                }
                if number != lastVideo.map({ $0 + 2 }) {
                    #expect(number % 50 == 0, "video goes on at a keyframe, not at \(number)")
                    resumed += 1
                }
                lastVideo = number
            }
            #expect(resumed > 1, "video was skipped and taken up again")
            #expect(audio.count > 10 && audio == Array(stride(from: audio[0], through: audio[audio.count - 1], by: 2)))
        }
    }
}

/// Counts up from 0. For one event loop's tasks.
private final class Counter: @unchecked Sendable {
    // Used by one repeated task only.
    private var value = -1
    func next() -> Int {
        self.value += 1
        return self.value
    }
}
