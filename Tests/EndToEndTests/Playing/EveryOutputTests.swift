import EarshotServer
import Foundation
import Media
import MediaClips
import Rooms
import ServerTestSupport
import TestSupport
import Testing

@testable import ServerConfiguration
@testable import Support

/// All outputs of a stream at once: each shows the pushed pictures, whatever their codec.
@Suite struct EveryOutputTests {
    enum Media: String, CaseIterable, CustomTestStringConvertible {
        case hevc = "HEVC"
        case av1 = "AV1"
        case toHEVC = "H.264, then HEVC"
        case toAV1 = "H.264, then AV1"
        case wrap = "times that wrap"
        case camera = "a camera's form"

        var testDescription: String { self.rawValue }
        var changes: Bool { self == .toHEVC || self == .toAV1 }

        /// Files to push one after the other.
        func files(_ ffmpeg: String) async throws -> [String] {
            let hevc = ["-c:v", "libx265", "-preset", "ultrafast", "-x265-params", "log-level=error:keyint=25:min-keyint=25"]
            let av1 = ["-c:v", "libaom-av1", "-cpu-used", "8", "-usage", "realtime", "-g", "25"]
            func file(_ video: [String], seconds: Int) async throws -> String {
                try await Fixture.flv(video: video, audio: Fixture.aac, seconds: seconds, ffmpeg: ffmpeg)
            }
            switch self {
            case .hevc: return [try await file(hevc, seconds: 5)]
            case .av1: return [try await file(av1, seconds: 5)]
            case .toHEVC: return [try await file(Fixture.withBFrames, seconds: 5), try await file(hevc, seconds: 2)]
            case .toAV1: return [try await file(Fixture.withBFrames, seconds: 5), try await file(av1, seconds: 2)]
            case .wrap: return [try await file(Fixture.withBFrames, seconds: 5)]
            case .camera:
                return [try await file(["-c:v", "libx264", "-profile:v", "baseline", "-g", "25", "-sc_threshold", "0"], seconds: 5)]
            }
        }

        /// The tags to push for those of the files.
        func sent(_ tags: [FLVTag]) throws -> [FLVTag] { self == .camera ? try CameraForm.tags(tags) : tags }

        /// Timestamp of the first tag, in milliseconds.
        var begin: UInt32 { self == .wrap ? UInt32.max - 2_500 : 0 }
        /// The codecs of each run, in every container.
        var codecs: [String] {
            switch self {
            case .hevc: ["aac hevc"]
            case .av1: ["aac av1"]
            case .toHEVC: ["aac h264", "aac hevc"]
            case .toAV1: ["aac h264", "aac av1"]
            case .wrap, .camera: ["aac h264"]
            }
        }
        /// Prefixes of MediaSource's codec names for each run.
        var names: [String] {
            self.codecs.map { $0.hasSuffix("hevc") ? "hvc1." : $0.hasSuffix("av1") ? "av01." : "avc1." }
        }
    }

    @Test(arguments: Media.allCases) func picturesAreThePushedOnes(_ media: Media) async throws {
        let files = try await media.files(try await NewFFmpeg.path())
        var tags: [FLVTag] = []
        var pushed: [[String]] = []
        for file in files {
            let begin = tags.last.map { $0.timestamp &+ 40 } ?? media.begin
            tags += try FLVTag.media(of: file).map { $0.later(by: begin) }
            pushed.append(try await Captured.pictures(of: file))
        }
        let (all, last) = (pushed.flatMap { $0 }, pushed.count > 1 ? pushed[1].count : pushed[0].count / 4)
        #expect(all.count >= 120)
        let sent = try media.sent(tags)
        try await Fixture.withDirectory { directory in
            try await TestServer.run(LinkTests.open) { edge in
                try await TestServer.run({
                    LinkTests.open(&$0)
                    $0.rooms.policy.graceMs = 500
                    $0.recording.apps = ["live"]
                    $0.hls.always = true
                    $0.hls.segmentMs = 1_000
                    $0.hls.windowMs = 60_000
                }) { server in
                    _ = try await LinkTests.create(server, "push", "cam1", "\(edge.rtmp)/live/copy")
                    let client = try await TagClient.publish(to: server, "live/cam1")
                    let publisher = PacedPublisher(client)
                    // The rest once everybody watches.
                    let cut = sent.count / 5
                    try await publisher.send(Array(sent[..<cut]))
                    try await server.wait("streams") {
                        $0["list"][0]["video"]["width"].int != nil && $0["list"][0]["audio"]["codec"].string != nil
                    }
                    async let flv = Captured.tags("\(server.http)/live/cam1.flv", in: directory)
                    async let bodies = Captured.bodies(server, "cam1", in: directory)
                    async let messages = Captured.messages(server, "cam1", in: directory)
                    try await edge.wait("streams") { $0["list"][0]["video"]["width"].int != nil }
                    async let pushedOn = Captured.tags("\(edge.http)/live/copy.flv", in: directory)
                    let live = try await LiveHLS(server, "cam1")
                    try await server.wait("sessions?role=player") { $0["list"].list.count { $0["transport"].string != "hls" } >= 3 }
                    try await edge.wait("sessions?role=player") { $0["total"].int ?? 0 >= 1 }
                    try await publisher.send(Array(sent[cut...]))
                    await client.close()
                    let recorded = try await Captured.recordings(server, media.codecs.count)
                    let outputs: [(name: String, captured: Captured, isWhole: Bool)] = [
                        ("recording", recorded, true), ("HTTP-FLV", try await flv, false), ("mp4", try await bodies, false),
                        ("fmp4 over WebSocket", try await messages, false), ("pushedOn", try await pushedOn, false),
                        ("HLS", try await Captured.segments(live, server, "cam1", in: directory), true),
                    ]
                    for output in outputs {
                        let shown = try await output.captured.pictures()
                        // A viewer that joins begins with a keyframe, and misses nothing after it.
                        #expect(Captured.difference(shown, from: all.suffix(shown.count)) == nil, "\(output.name)")
                        #expect(output.isWhole ? shown.count == all.count : shown.count > last, "\(output.name): \(shown.count) pictures")
                        var codecs: [String] = []
                        for run in output.captured.runs { codecs.append(try await Self.codecs(of: run)) }
                        #expect(codecs == media.codecs, "\(output.name)")
                        let types = output.captured.runs.map(\.mimeType).filter { !$0.isEmpty }
                        let named = zip(types, media.names).allSatisfy {
                            $0.hasPrefix("video/mp4; codecs=\"\($1)") && $0.contains("mp4a.40.2")
                        }
                        #expect(types.isEmpty || types.count == media.names.count && named, "\(output.name): \(types)")
                    }
                }
            }
        }
    }

    /// The first players arrive at the same moment, and all are served.
    @Test func theFirstComeTogether() async throws {
        let tags = try FLVTag.media(of: try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 10))
        try await TestServer.run { server in
            let client = try await TagClient.publish(to: server, "live/cam1")
            let pushing = Task { try await PacedPublisher(client).send(tags) }
            defer { pushing.cancel() }
            try await server.wait("streams") { $0["list"][0]["video"]["width"].int != nil }
            try await withThrowingTaskGroup(of: Void.self) { players in
                for _ in 0..<16 {
                    players.addTask {
                        let player = try await WebSocketClient.open(server.addresses.http.port, "/live/cam1.fmp4")
                        try await eventually("pieces") { try player.all.count > 3 }
                        await player.close()
                    }
                }
                try await players.waitForAll()
            }
            await client.close()
        }
    }

    /// Debian's ffprobe does not know Enhanced FLV.
    private static func codecs(of run: Captured.Run) async throws -> String {
        guard run.file.hasSuffix(".flv") else { return try await Captured.codecs(of: run.file) }
        let outcome = try await ClientProcess.run([try await NewFFmpeg.path(), "-hide_banner", "-i", run.file])
        let names = outcome.errors.split(separator: "\n").compactMap { line -> String? in
            for kind in ["Video: ", "Audio: "] {
                if let at = line.range(of: kind) { return String(line[at.upperBound...].prefix { $0.isLetter || $0.isNumber }) }
            }
            return nil
        }
        return names.sorted().joined(separator: " ")
    }
}
