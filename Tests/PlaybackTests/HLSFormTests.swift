import PortlessTestSupport
import RTMP
import ServerConfiguration
import ServerTestSupport
import TestSupport
import Testing

@testable import EarshotServer
@testable import Packaging
@testable import Playback

/// HLS in fragmented MP4 and in MPEG-TS: the address chooses.
@Suite struct HLSFormTests {
    /// A path, and the format and stream that it names.
    @Test(arguments: [
        ("/live/cam.m3u8", LivePath.Format.m3u8, "live/cam"), ("/live/cam.ts.m3u8", .tsM3U8, "live/cam"),
        ("/live/cam.TS.M3U8", .tsM3U8, "live/cam"), ("/live/a/cam.ts.m3u8", .tsM3U8, "live/a/cam"),
        ("/live/cam.ts.ts.m3u8", .tsM3U8, "live/cam.ts"), ("/live/cam%2Ets.m3u8", .m3u8, "live/cam.ts"),
        ("/live/cam.ts.flv", .flv, "live/cam.ts"), ("/live/.ts.m3u8", .m3u8, "live/.ts"),
    ]) func addresses(_ path: String, _ format: LivePath.Format, _ stream: String) throws {
        #expect(LivePath.format(of: path) == format)
        let live = try LivePath(path, query: nil, format, limits: RTMP.Limits())
        #expect(live.address.path == stream)
        #expect(LivePath.format(of: "/live/cam.hls/ts.m3u8") == nil)
    }

    /// Both forms of a stream play at once, each made only while somebody asks for it. The setting says what ".m3u8" is.
    @Test(arguments: ServerConfig.HLS.Container.allCases) func bothAtOnce(_ usual: ServerConfig.HLS.Container) async throws {
        let tags = try await FLVTag.media(of: Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 4))
        try await PortlessServer.run({ $0.hls.container = usual }) { server in
            let publisher = try await TagClient.publish(to: server, "live/cam1")
            try await publisher.send(tags)
            try await server.wait("streams") { $0["list"][0]["video"]["keyframeIntervalMs"].int != nil }
            let remuxers = server.parts.remuxers
            #expect(remuxers.all.isEmpty)
            let first = try await Self.segment(server, "cam1.m3u8", usual) { try await publisher.send(tags.map { $0.later(by: 4_000) }) }
            #expect(Self.isTS(first) == (usual == .ts) && remuxers.all.count == 1)
            let other = try await Self.segment(server, "cam1.ts.m3u8", .ts) { try await publisher.send(tags.map { $0.later(by: 8_000) }) }
            #expect(Self.isTS(other) && remuxers.all.count == (usual == .ts ? 1 : 2))
            #expect(remuxers.all.contains { $0 === remuxers.find("live/cam1", .ts) })
            // Each form has players of its own, whatever the other has.
            let sessions = server.parts.remuxers.isPlayed
            #expect(sessions("live/cam1", .ts) && sessions("live/cam1", .fmp4) == (usual == .fmp4))
            await publisher.close()
        }
    }

    private static func isTS(_ bytes: [UInt8]) -> Bool { bytes.count > 188 && bytes[0] == 0x47 && bytes[188] == 0x47 }

    /// The first segment of the playlist at this address. `more` sends media once it is remuxed.
    private static func segment(
        _ server: PortlessServer, _ name: String, _ form: ServerConfig.HLS.Container, more: () async throws -> Void
    ) async throws -> [UInt8] {
        async let answer = HTTPAnswer.call("GET", "\(server.http)/live/\(name)")
        try await eventually("the remuxer") { await server.parts.remuxers.find("live/cam1", form)?.isFollowing == true }
        try await more()
        let first = try await answer
        #expect(first.status == 200, "\(first.text)")
        let media = try first.text.split(separator: "\n").first { $0.contains(".m3u8?s=") }.map(String.init).orThrow()
        #expect(media.hasPrefix(form == .ts ? "cam1.hls/ts.m3u8?" : "cam1.hls/media.m3u8?"), "\(media)")
        let list = try await HTTPAnswer.call("GET", "\(server.http)/live/\(media)")
        let segment = try list.text.split(separator: "\n").first { !$0.hasPrefix("#") }.map(String.init).orThrow()
        #expect(segment.contains(form == .ts ? ".ts?" : ".m4s?") && list.text.contains("EXT-X-MAP") == (form == .fmp4), "\(list.text)")
        // A session's folder has no playlist of the other form.
        let wrong = media.replacing(form == .ts ? "/ts.m3u8" : "/media.m3u8", with: form == .ts ? "/media.m3u8" : "/ts.m3u8")
        #expect(try await HTTPAnswer.call("GET", "\(server.http)/live/\(wrong)").status == 404)
        return Array(try await HTTPAnswer.call("GET", "\(server.http)/live/cam1.hls/\(segment)").body)
    }
}
