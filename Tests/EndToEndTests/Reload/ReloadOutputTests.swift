import Foundation
import ServerTestSupport
import TestSupport
import Testing

/// HLS of streams that begin after a reload, and pictures from then on.
@Suite struct ReloadOutputTests {
    /// Keyframes each second; the second clip is of at least 2 Mbit/s.
    private static func source() async throws -> String {
        try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 10)
    }

    private static func largeSource() async throws -> String {
        let video = ["-c:v", "libx264", "-preset", "ultrafast", "-profile:v", "baseline", "-qp", "12", "-g", "25"]
        return try await Fixture.flv(video: video, audio: Fixture.aac, seconds: 10, size: "640x360")
    }

    /// Waits until the playlist has dropped a segment; returns it.
    private static func fullPlaylist(_ server: ReloadingServer, _ name: String) async throws -> String {
        var text = ""
        func first() -> Int? { text.firstMatch(of: /#EXT-X-MEDIA-SEQUENCE:(\d+)/).flatMap { Int($0.1) } }
        try await eventually("\(name)'s playlist") {
            text = try await HTTPAnswer.get("\(server.http)/live/\(name).m3u8").text
            return text.hasPrefix("#EXTM3U")
        }
        let media = try text.split(separator: "\n").first { !$0.hasPrefix("#") }.orThrow()
        var start: Int?
        try await eventually("a segment to leave \(name)'s playlist") {
            text = try await HTTPAnswer.get("\(server.http)/live/\(media)").text
            start = start ?? first()
            return first() != start
        }
        return text
    }

    private static func segments(_ playlist: String) -> Int { playlist.components(separatedBy: "#EXTINF").count - 1 }

    @Test func playlists() async throws {
        let (source, large) = (try await Self.source(), try await Self.largeSource())
        try await ReloadingServer.run(["hls.segment": "10s", "hls.window": "1h"]) { server in
            func windowBytes() async throws -> Double {
                let text = try await HTTPAnswer.get("\(server.http)/metrics", token: server.earshot.token).text
                let line = try text.split(separator: "\n").first { $0.hasPrefix("earshot_hls_window_bytes ") }.orThrow()
                return try line.split(separator: " ").last.flatMap { Double($0) }.orThrow()
            }
            // Nobody asks for this one before it has a window, which never gets long.
            try await server.apply(["hls.segment": "1s", "hls.window": "1h", "hls.maxBytes": "1MiB", "hls.always": "true"])
            let other = try ClientProcess(FFmpeg.pushForEver(large, to: "\(server.rtmp)/live/cam2"))
            defer { other.send(SIGKILL) }
            try await eventually("a window without viewers") { try await windowBytes() > 0 }
            #expect(Self.segments(try await Self.fullPlaylist(server, "cam2")) <= 8)

            try await server.apply(["hls.part": "500ms", "hls.segment": "1s", "hls.window": "6s"])
            let push = try ClientProcess(FFmpeg.pushForEver(source, to: "\(server.rtmp)/live/cam1"))
            defer { push.send(SIGKILL) }
            try await server.waitForPush()
            let playlist = try await Self.fullPlaylist(server, "cam1")
            #expect(playlist.contains("PART-TARGET=0.5") && playlist.contains("#EXT-X-TARGETDURATION:1\n"), "\(playlist)")
            #expect(Self.segments(playlist) <= 8, "\(playlist)")

            try await server.apply(["limits.hlsPlayers": "1"])
            // Those who have not asked for a while make room first.
            try await eventually("a player too many") {
                let answer = try await HTTPAnswer.get("\(server.http)/live/cam1.m3u8")
                return answer.status == 503 && answer.text.contains("limits.hlsPlayers")
            }
        }
    }

    @Test func pictures() async throws {
        let source = try await Self.source()
        try await ReloadingServer.run { server in
            let push = try ClientProcess(FFmpeg.pushForEver(source, to: "\(server.rtmp)/live/cam1"))
            defer { push.send(SIGKILL) }
            try await server.waitForPush()
            func pictures() async throws -> [JSON] { try await server.api("rooms/cam1/snapshots")["list"].list }
            let by = "[live=500ms]"
            try await server.apply(["snapshots.intervalByApp": by, "snapshots.width": "160", "recording.minFree": "0"])
            try await eventually("three pictures") { try await pictures().count >= 3 }
            let taken = try await pictures()
            #expect(taken.allSatisfy { $0["width"].int == 160 }, "\(taken.map(\.value))")
            // Room for one and a half.
            let most = try taken.compactMap { $0["bytes"].int }.max().orThrow() * 3 / 2
            try await server.apply(["snapshots.intervalByApp": by, "snapshots.width": "160", "snapshots.quota": "\(most)B"])
            try await eventually("one picture") { try await pictures().count == 1 }
        }
    }
}
