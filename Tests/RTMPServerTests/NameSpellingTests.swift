import APITestSupport
import RTMP
import RTMPTestSupport
import ServerConfiguration
import ServerTestSupport
import Support
import TestSupport
import Testing

/// Two spellings of one text are two names to signatures, and one to Swift's strings. Only the composed one may be published and played.
@Suite struct NameSpellingTests {
    private static let key = "a key for tests"
    private static let (composed, decomposed) = ("caf\u{E9}", "cafe\u{301}")

    /// With a right signature over these bytes.
    private static func signed(_ name: String, until txTime: String = "7FFFFFFF") -> String {
        "\(name)?\(TestCredential.signed(name, txTime: txTime, key: self.key))"
    }

    @Test func `another spelling of a running stream's name takes nothing over`() async throws {
        try await UnboundServer.run({
            $0.access.publishFrom = []
            $0.access.playFrom = []
            $0.credentials.key = Self.key
        }) { server in
            let publisher = try await server.livePublisher(Self.signed(Self.composed, until: "7FFFFF00"))
            let viewer = try await server.player(of: Self.signed(Self.composed))
            for isPublish in [true, false] {
                for (app, name) in [("live", Self.signed(Self.decomposed)), (Self.decomposed, Self.signed("cam"))] {
                    let other = try await RawClient.connected(server.port, app: app)
                    _ = try await other.createStream()
                    if isPublish { try? await other.publish(name) } else { try? await other.play(name) }
                    try await server.expectClosed(other, .badName)
                    let status = other.statuses.last
                    #expect(status?.code == (isPublish ? StatusCode.publishBadName : StatusCode.playStreamNotFound))
                    #expect(
                        status?.description.contains(
                            "is not in Unicode Normalization Form C: write \"é\" as U+00E9, not as U+0065 U+0301") == true)
                }
            }
            let before = viewer.media().count
            publisher.send(.audio, SyntheticTag.audio(2, bytes: 20), timestamp: 20)
            try await eventually("media") { viewer.media().count > before }
            #expect(!publisher.isClosed && !viewer.isClosed)
            #expect(viewer.media().count == before + 1, "the first publisher's alone")
            await viewer.close()
            await publisher.close()
        }
    }
}
