import Foundation
import PortlessTestSupport
import ServerConfiguration
import ServerTestSupport
import TestSupport
import Testing

@testable import EarshotServer
@testable import Packaging

/// Playing over HTTP by a device's name.
@Suite struct DeviceNameTests {
    @Test func `a device's name plays its room's stream in every form`() async throws {
        let tags = try await FLVTag.media(of: Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 4))
        try await PortlessServer.run { server in
            let room = Data(#"{"roomId":"walk","deviceUid":"EAR-7"}"#.utf8)
            #expect(try await HTTPAnswer.call("POST", "\(server.http)/api/v1/rooms", body: room, token: server.token).status == 201)
            let publisher = try await TagClient.publish(to: server, "live/EAR-7")
            try await publisher.send(tags)
            try await server.wait("streams") { $0["list"][0]["video"]["keyframeIntervalMs"].int != nil }
            async let answer = HTTPAnswer.call("GET", "\(server.http)/live/EAR-7.m3u8")
            try await eventually("the remuxer") { await server.parts.remuxers.find("live/walk", .fmp4)?.isFollowing == true }
            try await publisher.send(tags.map { $0.later(by: 4_000) })
            let first = try await answer
            #expect(first.status == 200, "\(first.text)")
            // Its files stay below the address that the player knows.
            let media = try first.text.split(separator: "\n").first { $0.contains(".m3u8?s=") }.map(String.init).orThrow()
            #expect(media.hasPrefix("EAR-7.hls/media.m3u8?"), "\(media)")
            let list = try await HTTPAnswer.call("GET", "\(server.http)/live/\(media)")
            let segment = try list.text.split(separator: "\n").first { !$0.hasPrefix("#") }.map(String.init).orThrow()
            #expect(try await HTTPAnswer.call("GET", "\(server.http)/live/EAR-7.hls/\(segment)").status == 200)
            for ending in ["flv", "mp4", "m3u8"] {
                #expect(try await HTTPAnswer.call("HEAD", "\(server.http)/live/EAR-7.\(ending)").status == 200, "\(ending)")
                #expect(try await HTTPAnswer.call("HEAD", "\(server.http)/live/EAR-8.\(ending)").status == 404, "\(ending)")
            }
            let ban = "\(server.http)/api/v1/streams/live/EAR-7/forbid"
            #expect(try await HTTPAnswer.call("POST", ban, body: Data("{}".utf8), token: server.token).status == 200)
            #expect(try await HTTPAnswer.call("GET", "\(server.http)/live/EAR-7.flv").status == 403)
            await publisher.close()
        }
    }
}
