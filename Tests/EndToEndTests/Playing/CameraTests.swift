import EarshotServer
import Foundation
import HLSCheck
import Media
import Rooms
import ServerTestSupport
import TestSupport
import Testing

@testable import ServerConfiguration

/// Every output shows a camera that is turned on late, off and on again.
@Suite struct CameraTests {
    /// Three seconds of sound, four of both, four of sound, two of both.
    @Test func comesAndGoes() async throws {
        // One keyframe in each run: an HTTP body ends with its run, and the next request gets the next run from its keyframe, however late.
        let file = try await Fixture.flv(video: Fixture.baseline + ["-g", "100"], audio: Fixture.aac, seconds: 4)
        let clip = try FLVTag.media(of: file)
        let (headers, coded) = (clip.filter(\.isSequenceHeader), clip.filter { !$0.isSequenceHeader })
        let sounds = coded.filter { $0.kind == .audio }
        let tags =
            headers + sounds.filter { $0.timestamp < 3_000 } + coded.map { $0.later(by: 3_000) } + sounds.map { $0.later(by: 7_000) }
            + coded.filter { $0.timestamp < 2_000 }.map { $0.later(by: 11_000) }
        let once = try await Captured.pictures(of: file)
        let pushed = once + once.prefix(tags.count { $0.kind == .video } - 1 - once.count)
        try await Fixture.withDirectory { directory in
            try await TestServer.run({
                $0.rooms.policy.graceMs = 500
                // Players that a busy machine keeps from reading must miss nothing.
                $0.relay.skipBehindMs = 20_000
                $0.relay.maxBehindMs = 30_000
                $0.recording.apps = ["live"]
                $0.hls.always = true
                // As long as the longest run and the second of sound behind it, after which the camera counts as off.
                $0.hls.segmentMs = 5_000
                $0.hls.windowMs = 60_000
            }) { server in
                let client = try await TagClient.publish(to: server, "live/cam1")
                // Sound alone is made into pieces after two seconds of it, and no more is sent until the players have some.
                try await HLSLatencyTests.remuxing(server)
                let publisher = PacedPublisher(client)
                // Enough to begin with, although the announced pictures do not arrive yet. More sound follows once the players are there: what
                // they begin with may hold none, if the sender paused before its last frame. The rest follows once they have some.
                let (joinMs, heardMs): (UInt32, UInt32) = (2_500, 2_900)
                try await publisher.send(tags.filter { $0.timestamp < joinMs })
                async let bodies = Captured.bodies(server, "cam1", in: directory)
                async let messages = Captured.messages(server, "cam1", in: directory)
                try await server.wait("sessions?role=player") { $0["total"].int == 2 }
                try await publisher.send(tags.filter { (joinMs..<heardMs).contains($0.timestamp) })
                // Players must have sound, not only be known: one that joins later begins with a later picture.
                try await server.wait("sessions?role=player") { sessions in
                    (0..<2).allSatisfy { sessions["list"][$0]["bytesOut"].int ?? 0 > 1_000 }
                }
                async let publishing = publisher.send(tags.filter { $0.timestamp >= heardMs })
                let live = try await LiveHLS(server, "cam1")
                let violations = try await Self.follow(live)
                #expect(violations.isEmpty, "\(violations)")
                _ = try await publishing
                await client.close()
                try await eventually("the playlist's end") { try await live.playlist().text.contains("#EXT-X-ENDLIST") }
                // Fetched at once, since a session ends when nothing is requested for a while.
                let segments = try await Captured.segments(live, server, "cam1", in: directory)

                // A file has a pause while the camera is off.
                let recorded = try await Captured.recordings(server, 2)
                let kept = Captured.difference(try await recorded.pictures(), from: pushed)
                #expect(kept == nil)
                #expect(try await Captured.codecs(of: recorded.runs[0].file) == "aac")
                #expect(try await Captured.codecs(of: recorded.runs[1].file) == "aac h264")
                let durations = try await [ProbedFile(recorded.runs[0].file).durationMs, ProbedFile(recorded.runs[1].file).durationMs]
                #expect((2_800...3_300).contains(durations[0]) && (9_700...10_300).contains(durations[1]), "\(durations)")
                // Players get a run for each state.
                for (name, captured) in [("mp4", try await bodies), ("fmp4", try await messages)] {
                    let types = captured.runs.map { $0.mimeType.split(separator: ";")[0] }
                    #expect(types == ["audio/mp4", "video/mp4", "audio/mp4", "video/mp4"], "\(name)")
                    let shown = Captured.difference(try await captured.pictures(), from: pushed)
                    #expect(shown == nil, "\(name)")
                }
                #expect(segments.runs.count == 4)
                let listed = Captured.difference(try await segments.pictures(), from: pushed)
                #expect(listed == nil)
            }
        }
    }

    /// Follows the playlist to its end. Returns the checker's first violations.
    private static func follow(_ live: LiveHLS) async throws -> [Violation] {
        var history = PlaylistHistory()
        let begin = ContinuousClock.now
        var wanted: (msn: Int, part: Int)?
        while ContinuousClock.now - begin < .seconds(40) {
            let answer = try await live.playlist(wanted)
            guard answer.status == 200 else {
                wanted = nil
                continue
            }
            let violations = history.check(answer.text, atMs: Int64((ContinuousClock.now - begin) / .milliseconds(1)))
            if !violations.isEmpty { return violations }
            let listedMs = ListedParts.listedMs(answer.text)
            if answer.text.contains("#EXT-X-ENDLIST") || listedMs > 12_500 { return [] }
            wanted = ListedParts.next(after: answer.text)
        }
        throw TimedOut(description: "the playlist goes no further")
    }
}
