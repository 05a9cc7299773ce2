import Access
import Foundation
import ServerTestSupport
import TestSupport
import Testing

/// Keys that come and go by a reload: what they signed opens streams, or does not.
@Suite struct ReloadCredentialTests {
    private static let key = TestCredential.keys.key
    private static let other = "the-other-key-0001"
    private static let jwtKey = "another-key-for-tokens-0123456789"

    private static func token(_ key: String) -> String {
        let expires = Int(Date().timeIntervalSince1970) + 600
        return "cam1?token=" + TestCredential.token(#"{"exp":\#(expires),"room":"cam1","act":["publish","play"]}"#, key: key)
    }

    @Test func keys() async throws {
        try await ReloadingServer.run([
            "access.publishFrom": "[]", "access.playFrom": "[]", "credentials.key": Self.key,
            "credentials.jwtKey": TestCredential.keys.jwtKey,
        ]) { server in
            try await server.makeRoom("cam1")
            func opens(_ action: ReloadingServer.RefusedAction, _ name: String) async throws -> Bool {
                try await server.refusal(action, name) == nil
            }
            let (own, byOther) = ("cam1?\(TestCredential.signed("cam1"))", "cam1?\(TestCredential.signed("cam1", key: Self.other))")
            #expect(try await opens(.publish, own))
            #expect(try await !opens(.publish, byOther))
            // A second key opens what the first one does.
            try await server.apply([
                "access.publishFrom": "[]", "access.playFrom": "[]", "credentials.key": Self.key, "credentials.backupKey": Self.other,
            ])
            #expect(try await opens(.publish, byOther))
            #expect(try await opens(.publish, own))
            #expect(try await opens(.play, byOther))
            // A key for plays opens no push. As the second one it is gone.
            try await server.apply([
                "access.publishFrom": "[]", "access.playFrom": "[]", "credentials.key": Self.key, "credentials.playKey": Self.other,
            ])
            #expect(try await !opens(.publish, byOther))
            #expect(try await opens(.play, byOther))
            // Tokens by another key.
            #expect(try await !opens(.play, Self.token(Self.jwtKey)))
            try await server.apply([
                "access.publishFrom": "[]", "access.playFrom": "[]", "credentials.key": Self.key, "credentials.jwtKey": Self.jwtKey,
            ])
            #expect(try await opens(.play, Self.token(Self.jwtKey)))
            #expect(try await !opens(.play, Self.token(TestCredential.keys.jwtKey)))
            // Tokens under another name.
            let renamed = Self.token(Self.jwtKey).replacing("token=", with: "et=")
            #expect(try await !opens(.play, renamed))
            try await server.apply([
                "access.publishFrom": "[]", "access.playFrom": "[]", "credentials.jwtKey": Self.jwtKey,
                "credentials.tokenParameters": "[et]",
            ])
            #expect(try await opens(.play, renamed))
            #expect(try await !opens(.play, Self.token(Self.jwtKey)))
        }
    }

    /// What the server signs itself.
    @Test func signedURLs() async throws {
        try await ReloadingServer.run { server in
            func secret() async throws -> Int {
                let url = try await server.call("POST", "rooms/r1/push-url", "{}").json()["data"]["rtmp"].string.orThrow()
                return try url.firstMatch(of: /txSecret=([0-9a-f]+)/).orThrow().1.count
            }
            try await server.makeRoom("r1")
            #expect(try await secret() == 32)
            try await server.apply(["credentials.hash": "sha256", "rooms.policy.urlLifetime": "100s"])
            #expect(try await secret() == 64)
            // Rooms that are made now have the new lifetime of URLs.
            try await server.makeRoom("r2")
            func expires(_ room: String) async throws -> Double {
                let text = try await server.call("POST", "rooms/\(room)/push-url", "{}").json()["data"]["expiresAt"].string.orThrow()
                return try Date(text, strategy: .iso8601.year().month().day().time(includingFractionalSeconds: text.contains(".")))
                    .timeIntervalSinceNow
            }
            #expect(try await (30...101).contains(expires("r2")))
            #expect(try await expires("r1") > 80_000)
        }
    }
}
