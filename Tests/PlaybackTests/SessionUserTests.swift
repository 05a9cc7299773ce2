import Access
import Foundation
import PortlessTestSupport
import ServerConfiguration
import ServerTestSupport
import Support
import TestSupport
import Testing

@testable import EarshotServer
@testable import Packaging

/// The list of connections names the users of credentials.
@Suite struct SessionUserTests {
    private static func token(_ user: String, _ action: String) -> String {
        TestCredential.token(#"{"sub":"\#(user)","stream":"live/cam1","act":["\#(action)"],"exp":2000000000}"#)
    }

    @Test func whoPublishesAndWhoPlays() async throws {
        let tags = try await FLVTag.media(of: Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 2))
        try await PortlessServer.run({ $0.credentials.jwtKey = TestCredential.keys.jwtKey }) { server in
            let publisher = try await TagClient.publish(to: server, "live/cam1?token=\(Self.token("ann", "publish"))")
            try await publisher.send(tags)
            try await server.wait("streams") { $0["list"][0]["video"]["keyframeIntervalMs"].int != nil }
            // The playlist comes with the first segment.
            async let named = HTTPAnswer.get("\(server.http)/live/cam1.m3u8?token=\(Self.token("ben", "play"))")
            async let unnamed = HTTPAnswer.get("\(server.http)/live/cam1.m3u8")
            try await eventually("the remuxer") { await server.parts.remuxers.find("live/cam1", .fmp4)?.isFollowing == true }
            try await publisher.send(tags.map { $0.later(by: 4_000) })
            let answers = try await [named.status, unnamed.status]
            #expect(answers == [200, 200])
            let sessions = try await server.api("sessions")["list"].list
            let users = sessions.map { "\($0["transport"].string ?? "") \($0["userId"].string ?? "-")" }
            #expect(users.sorted() == ["hls -", "hls ben", "rtmp ann"])
            await publisher.close()
        }
    }
}
