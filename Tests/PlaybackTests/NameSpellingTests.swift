import PortlessTestSupport
import ServerConfiguration
import ServerTestSupport
import Support
import TestSupport
import Testing

/// A stream plays by one spelling of its name, whatever a signature says.
@Suite struct NameSpellingTests {
    @Test func `another spelling of a running stream's name plays nothing`() async throws {
        let tags = try await FLVTag.media(of: Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 2))
        let key = "a key for tests"
        @Sendable func signed(_ name: String) -> String { "?\(TestCredential.signed(name, key: key))" }
        try await PortlessServer.run({
            $0.credentials.key = key
            $0.access.playFrom = []
        }) { server in
            let (composed, decomposed) = ("caf\u{E9}", "cafe\u{301}")
            let publisher = try await TagClient.publish(to: server, "live/\(composed)")
            try await publisher.send(tags)
            try await server.wait("streams") { $0["list"][0]["video"]["keyframeIntervalMs"].int != nil }
            let viewer = try await TagClient.play(from: server, "live/\(composed)\(signed(composed))")
            try await eventually("its pictures") { !viewer.tags.isEmpty }
            for ending in ["flv", "mp4", "m3u8"] {
                let answer = try await HTTPAnswer.call("GET", "\(server.http)/live/cafe%CC%81.\(ending)\(signed(decomposed))")
                #expect(answer.status == 400, "\(ending)")
                #expect(answer.text.contains("is not in Unicode Normalization Form C: write"), "\(answer.text)")
                let other = try await HTTPAnswer.call("GET", "\(server.http)/live/cafe%CC%81.\(ending)\(signed(composed))")
                #expect(other.status == 400, "\(ending)")
            }
            #expect(!publisher.current.isClosed && !viewer.current.isClosed)
            await viewer.close()
            await publisher.close()
        }
    }
}
