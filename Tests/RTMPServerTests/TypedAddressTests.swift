import Access
import APITestSupport
import EarshotServer
import RTMP
import RTMPTestSupport
import ServerConfiguration
import ServerTestSupport
import Support
import TestSupport
import Testing

/// What people type into encoders, as the encoders send it: each joins, or is told why in words that the device's log shows.
@Suite struct TypedAddressTests {
    private static func close(_ config: inout ServerConfig) {
        config.access.publishFrom = []
        config.access.playFrom = []
        config.credentials.key = TestCredential.keys.key
    }

    private static let credential = TestCredential.signed("cam1")

    private static let joining: [(app: String, name: String)] = [
        ("live", "cam1?\(credential)"), ("live?\(credential)", "cam1"),
        // OBS with the whole address in its server field and no key.
        ("live/cam1?\(credential)", ""), ("live/cam1", "?\(credential)"),
        // A slash too many.
        ("live/cam1/?\(credential)", ""), ("live/cam1/", "?\(credential)"), ("live", "cam1/?\(credential)"),
        ("live/", "/cam1?\(credential)"),
        // A slash in the query, and an encoded name.
        ("live", "cam1?x=a/b&\(credential)"), ("live/cam1?x=a/b&\(credential)", ""), ("live", "cam%31?\(credential)"),
    ]

    @Test(arguments: joining) func `a push and a play join, with the credential in either part`(app: String, name: String) async throws {
        try await UnboundServer.run(Self.close) { server in
            let publisher = try await RawClient.connected(server.port, app: app)
            try await publisher.publish(name, on: publisher.createStream())
            publisher.send(.audio, SyntheticTag.audio(1, bytes: 20))
            try await server.wait("streams") { list in
                list["list"].list.contains { $0["name"].string == "cam1" && $0["app"].string == "live" }
            }
            let viewer = try await RawClient.connected(server.port, app: app)
            try await viewer.play(name, on: viewer.createStream())
            await viewer.close()
            await publisher.close()
        }
    }

    private static let refused: [(app: String, name: String, reason: CloseReason, words: String)] = [
        // No credential, as from `rtmp://user:pass@host/…` and OBS's "Use authentication": both wait to be asked.
        ("live", "cam1", .credentialMissing, "?token=…, or ?txSecret=…&txTime=…. A user name and password are not read."),
        ("live/cam1", "", .credentialMissing, "?token=…"), ("live?authmod=adobe&user=me", "cam1", .credentialMissing, "are not read"),
        // ffmpeg and librtmp cut rtmp://host/live/cam1?token=a/b at the slash in the query.
        ("live/cam1?token=a", "b", .credentialWrong, "If the URL's query holds a slash, write %2F for it"),
        // The credential is for another stream.
        ("live/cam2?\(credential)", "", .credentialWrong, "does not match this stream"),
        ("live", "", .badName, "the stream name is empty; expected rtmp://host/app/name, or the name as the encoder's stream key"),
        ("live", "cam1%3F\(credential)", .badName, "encoded slash or question mark"),
    ]

    @Test(arguments: refused) func `a refused push is told why`(app: String, name: String, reason: CloseReason, words: String) async throws
    {
        try await UnboundServer.run(Self.close) { server in
            let client = try await RawClient.connected(server.port, app: app)
            try await client.createStreamAndTryToPublish(name)
            try await server.expectClosed(client, reason)
            let status = try #require(client.statuses.last)
            #expect(status.level == .error && status.description.contains(words), "\(status.description)")
            #expect(!server.lines.all.contains { $0.contains(Self.credential.prefix(40)) }, "no credential in the log")
        }
    }

    /// No words about slashes for others whose credential is wrong.
    @Test func `the hint is for those whom it may help`() async throws {
        try await UnboundServer.run(Self.close) { server in
            let cases = [
                ("live", "cam1?token=a/b"), ("live?token=a", "cam1"), ("live/cam1?token=a/b", ""), ("live/room", "cam1?token=a"),
            ]
            for (app, name) in cases {
                let client = try await RawClient.connected(server.port, app: app)
                try await client.createStreamAndTryToPublish(name)
                try await server.expectClosed(client, .credentialWrong)
                #expect(client.statuses.last?.description.contains("slash") == false, "\(app) \(name)")
            }
        }
    }
}
