import Foundation
import ServerTestSupport
import TestSupport
import Testing

/// HEAD of what players ask for: players on televisions and download tools ask so first.
@Suite struct HeadTests {
    @Test func headsOfStreams() async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 20)
        try await TestServer.run { server in
            try await ClientProcess.during(FFmpeg.pushForEver(source, to: "\(server.rtmp)/live/cam1")) { _ in
                let first = try await LiveHLS(server, "cam1")
                let listed = try await first.playlist().text
                let segment = try listed.split(separator: "\n").first { !$0.hasPrefix("#") }.map(String.init).orThrow()
                let map = try listed.firstMatch(of: /EXT-X-MAP:URI="([^"]+)"/).orThrow().output.1
                for url in ["\(server.http)/live/cam1.m3u8"] + [segment, String(map)].map({ "\(server.http)/live/cam1.hls/\($0)" }) {
                    let get = try await HTTPAnswer.get(url)
                    let head = try await HTTPAnswer.call("HEAD", url)
                    #expect(get.status == 200 && head.status == 200 && head.body.isEmpty, "\(url)")
                    #expect(head.headers["content-length"] == "\(get.body.count)" && head.contentType == get.contentType, "\(url)")
                }
                for (ending, type) in [("flv", "video/x-flv"), ("mp4", "video/mp4")] {
                    let head = try await HTTPAnswer.call("HEAD", "\(server.http)/live/cam1.\(ending)")
                    #expect(head.status == 200 && head.body.isEmpty && head.headers["content-length"] == nil, "\(head.headers)")
                    #expect(head.contentType?.hasPrefix(type) == true, "\(head.headers)")
                }
                // The two players are those that fetched the first playlist.
                #expect(try await server.api("sessions?role=player")["total"].int == 2)
            }
        }
    }
}
