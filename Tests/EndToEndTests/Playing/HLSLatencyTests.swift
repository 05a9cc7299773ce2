import Foundation
import HLSCheck
import Media
import Rooms
import ServerTestSupport
import TestSupport
import Testing

@testable import EarshotServer
@testable import Packaging
@testable import ServerConfiguration
@testable import Streaming

/// The cost of low latency, and that nothing waits for what comes next. ``PartDelayTests`` judges the delay.
@Suite struct HLSLatencyTests {
    /// Coded pictures and sound, without the end of sequence.
    static func media(_ seconds: Int, audio: Bool = true) async throws -> [FLVTag] {
        try FLVTag.media(of: try await Fixture.flv(video: Fixture.baseline, audio: audio ? Fixture.aac : nil, seconds: seconds))
    }

    /// Waits until the stream's segments include media from the first picture on. A burst sent right after the publish would be too early.
    static func remuxing(_ server: TestServer) async throws {
        try await eventually("segments are made") { await server.server.parts.remuxers.find("live/cam1")?.isFollowing == true }
    }

    /// Every part is listed without any media after it. At most a part and a picture are held back.
    @Test func partsAreListedAsSoonAsTheyAreFull() async throws {
        let tags = try await Self.media(12)
        let begin = Int(try tags.first.orThrow().timestamp)
        try await TestServer.run({
            $0.hls.windowMs = 60_000
            $0.hls.segmentMs = 1_000
            // From the first picture on, so that the playlist's zero is known.
            $0.hls.always = true
        }) { server in
            let publisher = try await TagClient.publish(to: server, "live/cam1")
            try await Self.remuxing(server)
            var sentMs = 0
            var live: LiveHLS?
            var text = ""
            for untilMs in stride(from: 3_000, through: 11_500, by: 100) {
                try await publisher.send(tags.filter { (sentMs..<untilMs).contains(Int($0.timestamp)) })
                sentMs = untilMs
                let playlist = if let live { live } else { try await LiveHLS(server, "cam1") }
                if live == nil { text = try await playlist.playlist().text }
                live = playlist
                // A part is as long as its target allows, and a stall of the machine may end the first ones elsewhere.
                let held = try #require(ListedParts.partTargetMs(text), "\(text)") + 50
                while begin + Int(ListedParts.listedMs(text)) < untilMs - held {
                    // Answered with the part, or not at all within three segments. A reload without a wish waits for a whole segment.
                    var answer = try await playlist.playlist(ListedParts.next(after: text))
                    // The remuxer's thread may stand still for as long, beside hundreds of other tests.
                    for _ in 0..<3 where answer.status == 503 { answer = try await playlist.playlist(ListedParts.next(after: text)) }
                    let status = answer.status
                    try #require(status == 200, "\(untilMs) ms: \(status)\n\(text)")
                    text = answer.text
                }
            }
            await publisher.close()
        }
    }

    /// Many players wait for the same part: one playlist is written for all of them.
    @Test(arguments: [250, 1_000]) func manyShareOneAnswer(_ count: Int) async throws {
        let tags = try await Self.media(20)
        try await TestServer.run({
            // From the first picture on, since no more are sent before all players have asked.
            $0.hls.always = true
            // Requests wait for up to three segments.
            $0.hls.segmentMs = 8_000
        }) { server in
            let publisher = try await TagClient.publish(to: server, "live/cam1")
            try await Self.remuxing(server)
            try await publisher.send(tags.filter { $0.timestamp < 8_000 })
            let live = try await LiveHLS(server, "cam1")
            let remuxer = try server.server.parts.remuxers.find("live/cam1").orThrow()
            // All but one part, and where parts end depends on the machine's stalls: media still on its way cannot answer the request below.
            var text = ""
            try await eventually("eight seconds of media") {
                text = try await live.playlist().text
                return ListedParts.listedMs(text) >= 8_000 - (ListedParts.partTargetMs(text) ?? 0) - 50
            }
            let (msn, part) = ListedParts.next(after: text)
            let before = await remuxer.playlistsWritten
            try await Fixture.withDirectory { directory in
                // curl makes at most 300 requests at a time.
                let curls = try stride(from: 1, through: count, by: 250).map { first in
                    let asked = "\(live.url)&_HLS_msn=\(msn)&_HLS_part=\(part + 2)&player=[\(first)-\(min(first + 249, count))]"
                    return try ClientProcess([
                        "curl", "-sS", "--parallel", "--parallel-immediate", "--parallel-max", "250", "-o",
                        directory.appendingPathComponent("#1").path, asked,
                    ])
                }
                defer { for curl in curls { curl.send(SIGKILL) } }
                try await eventually("all to wait") { await remuxer.waiting == count }
                #expect(await remuxer.playlistsWritten == before)
                try await publisher.send(tags.filter { (8_000..<12_000).contains($0.timestamp) })
                for curl in curls {
                    let ended = try await curl.outcome()
                    #expect(ended.status == 0, "\(ended.errors)")
                }
                let written = await remuxer.playlistsWritten - before
                let answers = try (1...count).map { try String(contentsOf: directory.appendingPathComponent("\($0)"), encoding: .utf8) }
                #expect(answers.allSatisfy { $0.hasPrefix("#EXTM3U") })
                // Slow answers may see further parts of what was sent listed meanwhile: one playlist for each at most.
                let parts = 4_000 / (ListedParts.partTargetMs(text) ?? 4_000) + 2
                #expect((1...parts).contains(written), "\(written) playlists for \(count) answers")
                #expect(Set(answers).count <= written)
            }
            await publisher.close()
        }
    }

    /// With `hls.always` segments exist before anybody asks; without it nothing is remuxed.
    @Test(arguments: [true, false]) func always(_ isAlways: Bool) async throws {
        let tags = try await Self.media(20)
        try await TestServer.run({ $0.hls.always = isAlways }) { server in
            let publisher = PacedPublisher(try await TagClient.publish(to: server, "live/cam1"))
            let pushing = Task { try await publisher.send(tags) }
            defer { pushing.cancel() }
            try await eventually("six seconds of media") { publisher.sentAt.last?.ms ?? 0 > 6_000 }
            let remuxers = server.server.parts.remuxers
            #expect((remuxers.find("live/cam1") != nil) == isAlways)
            guard isAlways else { return }
            pushing.cancel()
            _ = await pushing.result
            // Nothing more is sent: what is listed came before the first viewer.
            let live = try await LiveHLS(server, "cam1")
            try await eventually("what came before the first viewer to be listed") {
                ListedParts.listedMs(try await live.playlist().text) > 4_000
            }
        }
    }
}
