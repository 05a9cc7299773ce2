import EarshotServer
import Media
import NIOCore
import RTMP
import RTMPTestSupport
import ServerTestSupport
import Support
import TestSupport
import Testing

@testable import ServerConfiguration

/// A limit that drops something logs it once, with the limit's name.
@Suite struct LimitLinesTests {
    private static func pictures(_ numbers: Range<Int>, bytes: Int, keyframes: Int) -> [FLVTag] {
        numbers.map { number in
            FLVTag(
                kind: .video, timestamp: UInt32(number * 40),
                payload: SyntheticTag.video(number, isKeyframe: number % keyframes == 0, bytes: bytes))
        }
    }

    private static let header = FLVTag(kind: .video, timestamp: 0, payload: SyntheticTag.videoHeader)

    private static func lines(_ server: TestServer, _ text: String) -> [String] { server.lines.all.filter { $0.contains(text) } }

    private static func wait(for messages: Int, at server: TestServer) async throws {
        try await eventually("all that was sent") {
            let bytes = try await server.api("streams")["list"][0]["bytesIn"].int ?? 0
            return bytes >= messages
        }
    }

    /// Frames arrive faster than they are remuxed.
    @Test func aRemuxerThatDoesNotKeepUp() async throws {
        try await TestServer.run({
            $0.hls.always = true
            // Below the range of the setting: of frames that arrive together, only the first fits.
            $0.limits.frameQueueBytes = 1
        }) { server in
            let publisher = try await TagClient.publish(to: server, "live/cam1")
            try await publisher.send([Self.header] + Self.pictures(0..<200, bytes: 500, keyframes: 25))
            try await eventually("the line") { !Self.lines(server, "Remuxing does not keep up").isEmpty }
            try await publisher.send(Self.pictures(200..<400, bytes: 500, keyframes: 25))
            try await Self.wait(for: 400 * 500, at: server)
            await publisher.close()
            try await server.wait("rooms/cam1") { $0["state"].string == "interrupted" }
            let lines = Self.lines(server, "Remuxing does not keep up")
            #expect(lines.count == 1 && lines[0].contains("limit=limits.frameQueue 1B, or 20000 frames"), "\(lines)")
            #expect(server.hits(.frameQueue) == 1)
        }
    }

    /// More pictures follow a keyframe than are cached for joiners.
    @Test func aCacheThatIsTooSmall() async throws {
        try await TestServer.run({ $0.relay.gopCache.maxBytes = 1 << 20 }) { server in
            let publisher = try await TagClient.publish(to: server, "live/cam1")
            let text = "The group of pictures exceeds the cache"
            // One and a half times the limit, repeatedly: what arrives before the loop's first look is not reported.
            let group = 1_536 << 10
            func send(_ round: Int) async throws {
                try await publisher.send(
                    (round == 0 ? [Self.header] : []) + Self.pictures((round * 12)..<(round * 12 + 12), bytes: group / 12, keyframes: 12))
                try await Self.wait(for: (round + 1) * group, at: server)
            }
            var round = 0
            while round < 500, Self.lines(server, text).isEmpty {
                try await send(round)
                round += 1
            }
            for more in 0..<3 { try await send(round + more) }
            await publisher.close()
            try await server.wait("rooms/cam1") { $0["state"].string == "interrupted" }
            let lines = Self.lines(server, text)
            #expect(lines.count == 1 && lines[0].contains("relay.gopCache.maxBytes 1MiB"), "\(lines)")
            #expect(lines[0].contains("relay.gopCache.maxDuration"))
        }
    }
}
