import Access
import ServerConfiguration
import Support
import Testing

/// ICE servers as browsers take them, and the credentials in them.
@Suite struct ICEServersTests {
    private static let urls = ["turn:t.example?transport=udp", "stun:t.example", "turns:t.example:443"]

    private static func ice(_ change: (inout ServerConfig.ICE) -> Void) -> ServerConfig.ICE {
        var ice = ServerConfig().ice
        ice.urls = Self.urls
        change(&ice)
        return ice
    }

    /// The credentials are those of
    ///
    ///     printf %s 1700043200:ann | openssl dgst -sha1 -hmac a-shared-secret -binary | base64
    ///     printf %s 1700043200 | openssl dgst -sha1 -hmac a-shared-secret -binary | base64
    @Test(
        arguments: [
            ("ann", "1700043200:ann", "KERVqiLf8+YKjY9nluu+Ra4EB34="), (nil, "1700043200", "FtbXefgVY1FPVJZFwHfMPJMcgYw="),
        ] as [(String?, String, String)]) func madeWithASecret(_ user: String?, _ username: String, _ credential: String)
    {
        let servers = Self.ice { $0.secret = "a-shared-secret" }.servers(for: user, nowSeconds: 1_700_000_000)
        let expected: JSONValue = [
            ["urls": ["stun:t.example"]],
            [
                "urls": ["turn:t.example?transport=udp", "turns:t.example:443"], "username": .string(username),
                "credential": .string(credential),
            ],
        ]
        #expect(servers == expected, "\(servers.text)")
    }

    @Test func lifetime() {
        let ice = Self.ice { ($0.secret, $0.lifetimeMs) = ("a-shared-secret", 90_000) }
        #expect(ice.servers(for: nil, nowSeconds: 1_000).text.contains(#""username":"1090","#))
        #expect(ice.servers(for: nil, nowSeconds: 2_000).text.contains(#""username":"2090","#))
    }

    /// `RTCPeerConnection` throws for a TURN server without a credential, so there is none in the list.
    @Test func withoutASecret() {
        #expect(
            Self.ice { ($0.username, $0.credential) = ("mesh", "pass") }.servers(for: "ann", nowSeconds: 1).text
                == #"[{"urls":["stun:t.example"]},{"urls":["turn:t.example?transport=udp","turns:t.example:443"],"username":"mesh","credential":"pass"}]"#
        )
        #expect(Self.ice { _ in }.servers(for: "ann", nowSeconds: 1).text == #"[{"urls":["stun:t.example"]}]"#)
        #expect(Self.ice { $0.urls = ["turn:t.example"] }.servers(for: nil, nowSeconds: 1).text == "[]")
        #expect(Self.ice { ($0.urls, $0.secret) = ([], "a-shared-secret") }.servers(for: nil, nowSeconds: 1).text == "[]")
    }
}
