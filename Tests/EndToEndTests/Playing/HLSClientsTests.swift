import EarshotServer
import Foundation
import HLSCheck
import Rooms
import ServerConfiguration
import ServerTestSupport
import TestSupport
import Testing

/// HLS with real players, and with a checker written from the specification.
@Suite struct HLSClientsTests {
    static let media = [
        RelayedPacketsTests.Recording("H.264 with B-frames, AAC", video: Fixture.withBFrames, audio: Fixture.aac),
        RelayedPacketsTests.Recording("AAC only", audio: Fixture.aac),
        RelayedPacketsTests.Recording("video only", video: Fixture.baseline),
    ]

    /// ffmpeg reads the pushed packets from the segments, without a gap, in both containers.
    @Test(arguments: media, [ServerConfig.HLS.Container.fmp4, .ts])
    func ffmpegPlays(_ media: RelayedPacketsTests.Recording, _ container: ServerConfig.HLS.Container) async throws {
        let source = try await Fixture.flv(video: media.video, audio: media.audio, seconds: 12)
        try await Fixture.withDirectory { directory in
            let (file, whole) = (directory.appendingPathComponent("played.mkv").path, directory.appendingPathComponent("pushed.mkv").path)
            try await TestServer.run({
                $0.hls.container = container
                // From the first picture on, and long enough for a slow start of the player.
                $0.hls.always = true
                $0.hls.windowMs = 60_000
                $0.hls.segmentMs = 1_000
                $0.rooms.policy.cleanStopMs = 500
            }) { server in
                try await ClientProcess.during(FFmpeg.push(source, to: "\(server.rtmp)/live/cam1")) { push in
                    try await server.wait("streams") { ($0["list"][0]["bytesIn"].int ?? 0) > 1_000 }
                    let player = try ClientProcess([
                        "ffmpeg", "-v", "error", "-live_start_index", "0", "-i", "\(server.http)/live/cam1.m3u8", "-c", "copy", file,
                    ])
                    defer { player.send(SIGKILL) }
                    _ = try await push.outcome()
                    let played = try await player.outcome()
                    #expect(played.status == 0, "the playlist has an end: \(played.errors)")
                }
            }
            // Compares decoded pictures, since segments of MPEG-TS have other bytes around the same pictures.
            _ = try await ClientProcess.run(["ffmpeg", "-v", "error", "-i", source, "-c", "copy", whole])
            if media.video != nil {
                let (got, sent) = (try await Self.pictures(file), try await Self.pictures(whole))
                #expect(got.count > sent.count / 2 && sent.containsRun(got), "\(got.count) of \(sent.count) pictures, or not in a row")
            }
            if media.audio != nil {
                let (got, sent) = (try await PacketList.of(file: file), try await PacketList.of(file: whole))
                let (heard, said) = (got.only("audio").hashes, sent.only("audio").hashes)
                #expect(heard.count > said.count / 2 && said.containsRun(heard), "\(heard.count) of \(said.count) packets, or not in a row")
            }
        }
    }

    /// Hashes of decoded frames.
    private static func pictures(_ file: String) async throws -> [String] {
        let made = try await ClientProcess.run(
            ["ffmpeg", "-v", "error", "-i", file, "-map", "0:v", "-f", "framehash", "-hash", "md5", "-"], within: 60)
        return made.text.split(separator: "\n").filter { !$0.hasPrefix("#") }.compactMap {
            $0.split(separator: ",").last.map { $0.trimmingCharacters(in: .whitespaces) }
        }
    }

    /// The output that gstreamer plays, and its demuxers.
    enum Output: String, CaseIterable {
        case hls, hlsTS, mp4

        var ending: String { self == .mp4 ? "mp4" : "m3u8" }
        var demuxers: [String] {
            switch self {
            case .hls: ["hlsdemux", "!", "qtdemux"]
            case .hlsTS: ["hlsdemux", "!", "tsdemux"]
            case .mp4: ["qtdemux"]
            }
        }
    }

    @Test(arguments: Output.allCases) func gstreamerPlays(_ output: Output) async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 12)
        try await TestServer.run({
            $0.rooms.policy.cleanStopMs = 500
            $0.hls.container = output == .hlsTS ? .ts : .fmp4
            $0.hls.segmentMs = 1_000
        }) { server in
            try await ClientProcess.during(FFmpeg.pushForEver(source, to: "\(server.rtmp)/live/cam1")) { push in
                try await server.wait("streams") { $0["list"][0]["video"]["keyframeIntervalMs"].int != nil }
                let player = try ClientProcess(
                    ["gst-launch-1.0", "-v", "souphttpsrc", "location=\(server.http)/live/cam1.\(output.ending)", "!"] + output.demuxers + [
                        "!", "h264parse", "!", "avdec_h264", "!", "identity", "silent=false", "!", "fakesink", "sync=false",
                    ])
                defer { player.send(SIGKILL) }
                try await eventually("a hundred pictures to be decoded") {
                    String(decoding: player.outputSoFar, as: UTF8.self).components(separatedBy: "chain   *").count > 100
                }
                // A clean stop, after which the player ends by itself.
                push.send(SIGINT)
                let ended = try await player.outcome()
                #expect(ended.status == 0, "\(ended.errors)")
            }
        }
    }

    /// A player requests each next part in advance, while the publisher leaves and returns. It comes back with the same encoding: its media goes on.
    @Test func playlistsAreAsTheSpecificationSays() async throws {
        let source = try await Fixture.flv(video: Fixture.withBFrames, audio: Fixture.aac, seconds: 8)
        try await TestServer.run { server in
            var push = try ClientProcess(FFmpeg.pushForEver(source, to: "\(server.rtmp)/live/cam1"))
            defer { push.send(SIGKILL) }
            try await server.wait("streams") { $0["list"][0]["video"]["keyframeIntervalMs"].int != nil }
            let first = try await HTTPAnswer.get("\(server.http)/live/cam1.m3u8")
            #expect(checkMultivariantPlaylist(first.text).isEmpty, "\(checkMultivariantPlaylist(first.text)) \(first.text)")
            let media = try first.text.split(separator: "\n").first { $0.contains("media.m3u8") }.map(String.init).orThrow()
            var history = PlaylistHistory()
            let begin = ContinuousClock.now
            var hint: String?
            var playlists = 0
            var hasReturned = false
            var lastSequence = 0
            let enough = max(31, (Self.liveSeconds - 6) * 3 + 1)
            func isOver() -> Bool {
                let seconds = (ContinuousClock.now - begin) / .seconds(1)
                // A machine that stalls for a while makes fewer playlists in this time.
                return seconds > Double(Self.liveSeconds) && (playlists >= enough || seconds > Double(Self.liveSeconds + 60))
            }
            while !isOver() {
                let query = hint.map { "&\($0)" } ?? ""
                let answer = try await HTTPAnswer.get("\(server.http)/live/\(media)\(query)")
                guard answer.status == 200 else {
                    // There is no media while the publisher is away.
                    #expect(answer.status == 503 && answer.headers["retry-after"] == "1", "\(answer.status) \(answer.text)")
                    continue
                }
                playlists += 1
                let atMs = Int64((ContinuousClock.now - begin) / .milliseconds(1))
                let violations = history.check(answer.text, atMs: atMs)
                #expect(violations.isEmpty, "\(violations)\n\(answer.text)")
                let next = ListedParts.next(after: answer.text)
                #expect(!answer.text.contains("#EXT-X-DISCONTINUITY\n"), "\(answer.text)")
                if !hasReturned { lastSequence = next.msn }
                hint = "_HLS_msn=\(next.msn)&_HLS_part=\(next.part)"
                if !hasReturned, ContinuousClock.now - begin > .seconds(4) {
                    push.send(SIGKILL)
                    _ = try await push.outcome()
                    push = try ClientProcess(FFmpeg.pushForEver(source, to: "\(server.rtmp)/live/cam1"))
                    hasReturned = true
                    hint = nil
                }
            }
            #expect(playlists >= enough, "\(playlists) playlists")
            #expect(history.latest?.lastSequence ?? 0 > lastSequence, "also after the publisher was away")
        }
    }

    /// Seconds for which the test follows the playlist.
    private static let liveSeconds = ProcessInfo.processInfo.environment["EARSHOT_HLS_SECONDS"].flatMap(Int.init) ?? 14

    /// A device is turned while a player watches: the stream has a discontinuity, and both sizes are played.
    @Test func turnedDevice() async throws {
        let landscape = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 6, size: "320x240")
        let portrait = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 5, size: "240x320")
        try await Fixture.withDirectory { directory in
            let joined = directory.appendingPathComponent("joined.flv").path
            try FLVFile.write(try RotationClientsTests.join(FLVFile.read(landscape), FLVFile.read(portrait)), to: joined)
            try await TestServer.run({
                $0.rooms.policy.cleanStopMs = 500
                $0.hls.segmentMs = 1_000
                $0.hls.windowMs = 30_000
                // From the first picture on, whenever the player asks.
                $0.hls.always = true
                // ffmpeg reads only the first initialization section of fragmented MP4.
                $0.hls.container = .ts
            }) { server in
                try await ClientProcess.during(FFmpeg.push(joined, to: "\(server.rtmp)/live/cam1")) { push in
                    try await server.wait("streams") { ($0["list"][0]["bytesIn"].int ?? 0) > 1_000 }
                    let player = try ClientProcess([
                        "ffprobe", "-v", "error", "-live_start_index", "0", "-select_streams", "v", "-show_entries", "frame=width,height",
                        "-of", "csv=p=0", "\(server.http)/live/cam1.m3u8",
                    ])
                    defer { player.send(SIGKILL) }
                    _ = try await push.outcome()
                    let played = try await player.outcome()
                    let lines = played.text.split(separator: "\n").map { $0.prefix(7) }
                    #expect(lines.contains("240,320"), "\(Set(lines)) \(played.errors) \(server.lines.all)")
                    let turn = lines.firstIndex(of: "240,320") ?? 0
                    #expect(turn > 100 && lines[..<turn].allSatisfy { $0 == "320,240" }, "\(turn)")
                    #expect(lines.count - turn > 75 && lines[turn...].allSatisfy { $0 == "240,320" }, "\(lines.count) pictures")
                }
            }
        }
    }

    /// A player that is no longer allowed to watch gets nothing, even with valid URLs. A session counts as a viewer.
    @Test func sessions() async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 12)
        try await TestServer.run { server in
            try await ClientProcess.during(FFmpeg.pushForEver(source, to: "\(server.rtmp)/live/cam1")) { _ in
                try await server.wait("streams") { $0["list"][0]["video"]["keyframeIntervalMs"].int != nil }
                func open() async throws -> (playlist: String, segment: String) {
                    let text = try await HTTPAnswer.get("\(server.http)/live/cam1.m3u8").text
                    let media = try text.split(separator: "\n").first { $0.contains("media.m3u8") }.map(String.init).orThrow()
                    let playlist = "\(server.http)/live/\(media)"
                    let list = try await HTTPAnswer.get(playlist)
                    let segment = try list.text.split(separator: "\n").first { !$0.hasPrefix("#") }.map(String.init).orThrow()
                    return (playlist, "\(server.http)/live/cam1.hls/\(segment)")
                }
                let (one, two) = (try await open(), try await open())
                let listed = try await server.api("sessions?role=player")
                #expect(listed["total"].int == 2 && listed["list"][0]["transport"].string == "hls")
                #expect(try await server.api("streams")["list"][0]["viewers"].int == 2)
                let segment = try await HTTPAnswer.get(one.segment)
                #expect(segment.status == 200 && segment.headers["cache-control"]?.contains("immutable") == true)
                #expect(segment.headers["content-type"] == "video/mp4")
                for (range, status, bytes) in [
                    ("bytes=0-99", 206, segment.body.prefix(100)), ("bytes=-7", 206, segment.body.suffix(7)),
                    ("bytes=70000-", 206, segment.body.dropFirst(70_000)), ("bytes=99999999-", 416, Data()),
                    ("bytes=1-2,5-6", 200, segment.body),
                ] where status != 206 || segment.body.count > 70_000 || !range.hasPrefix("bytes=7") {
                    let part = try await HTTPAnswer.call("GET", one.segment, headers: ["Range": range])
                    #expect(part.status == status && (status == 416 || part.body == bytes), "\(range): \(part.status) \(part.body.count)")
                    if status == 206 { #expect(part.headers["content-range"]?.hasSuffix("/\(segment.body.count)") == true) }
                }
                // Another stream's file with this session, and a file without a session.
                #expect(try await HTTPAnswer.get(one.segment.replacing("cam1.hls", with: "cam2.hls")).status == 403)
                #expect(try await HTTPAnswer.get(String(one.segment.prefix { $0 != "?" })).status == 403)
                #expect(try await HTTPAnswer.get("\(one.playlist)&_HLS_part=1").status == 400)
                #expect(try await HTTPAnswer.get("\(one.playlist)&_HLS_msn=99999999999").status == 400)
                let id = try listed["list"][0]["sessionId"].int.orThrow()
                #expect(try await server.call("DELETE", "sessions/\(id)").status == 200)
                let statuses = [try await HTTPAnswer.get(one.segment).status, try await HTTPAnswer.get(two.segment).status]
                #expect(statuses.sorted() == [200, 403], "one of the two is over: \(statuses)")
                #expect(try await server.call("POST", "streams/live/cam1/forbid", "{}").status == 200)
                #expect(try await HTTPAnswer.get(two.playlist).status == 403)
                #expect(try await HTTPAnswer.get(two.segment).status == 403)
                try await server.wait("sessions?role=player") { $0["total"].int == 0 }
            }
        }
    }
}

extension Array where Element: Equatable {
    /// Whether `run` occurs in the array, whole and in order.
    func containsRun(_ run: [Element]) -> Bool {
        guard let first = run.first, run.count <= self.count else { return false }
        return self.indices.prefix(self.count - run.count + 1).contains { self[$0] == first && Array(self[$0..<$0 + run.count]) == run }
    }
}
