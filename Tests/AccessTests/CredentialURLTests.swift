import NIOCore
import RTMP
import Rooms
import ServerConfiguration
import ServerTestSupport
import Support
import Testing

@testable import Access

@Suite struct CredentialURLTests {
    private static func addresses(
        _ host: String = "127.0.0.1", rtmp: Int = 1935, rtmps: Int? = nil, http: Int = 8080
    ) -> BoundAddresses {
        BoundAddresses(
            rtmp: HostPort(host: host, port: rtmp), rtmps: rtmps.map { HostPort(host: host, port: $0) },
            http: HostPort(host: host, port: http))
    }

    private static func urls(
        _ hash: ServerConfig.Credentials.Hash = .md5, rtmps: Int? = nil, keys: KeyRing = TestCredential.keys
    ) -> StreamURLs {
        let address = PublicAddress(config: ServerConfig(), addresses: self.addresses("192.0.2.1", rtmps: rtmps), requestHost: nil)
        var credentials = ServerConfig().credentials
        credentials.hash = hash
        return StreamURLs(address: address, keys: keys, credentials: credentials)
    }

    /// The first of the settings' names is in new URLs; without one there is no token to be in them.
    @Test func tokensHaveTheirParametersName() throws {
        var credentials = ServerConfig().credentials
        let address = PublicAddress(config: ServerConfig(), addresses: Self.addresses(), requestHost: nil)
        func url() throws(FieldError) -> String {
            try StreamURLs(address: address, keys: TestCredential.keys, credentials: credentials)
                .push(self.path, .init(scheme: .jwt, lifetimeSeconds: 60), nowMs: self.nowMs).rtmp
        }
        credentials.tokenParameters = ["et", "token"]
        #expect(try url().contains("?et=eyJ"))
        credentials.tokenParameters = []
        #expect(throws: FieldError.self) { try url() }
    }

    private let path = StreamPath(app: "live", name: "cam1")
    private let nowMs = Doorkeeper.now * 1_000

    /// The query of a URL, which must begin with `beginning`.
    private func query(_ url: String, _ beginning: String) throws -> String {
        #expect(url.hasPrefix(beginning + "?"), "\(url)")
        return String(url.dropFirst(beginning.utf8.count + 1))
    }

    @Test(arguments: [StreamURLs.Scheme.txSecret, .jwt], [ServerConfig.Credentials.Hash.md5, .sha256])
    func whatIsSignedIsAcceptedUntilItExpires(_ scheme: StreamURLs.Scheme, _ hash: ServerConfig.Credentials.Hash) throws {
        let door = Doorkeeper()
        let lifetimes: [Int64] = [1, 60, 86_400, 30 * 86_400]
        for lifetime in lifetimes {
            let signing = StreamURLs.Signing(scheme: scheme, lifetimeSeconds: lifetime, user: "alice", room: try RoomID(checking: "cam1"))
            let push = try Self.urls(hash).push(self.path, signing, nowMs: self.nowMs)
            let play = try Self.urls(hash).play(self.path, signing, nowMs: self.nowMs)
            let expires = Doorkeeper.now + lifetime
            #expect(push.expiresAt == expires * 1_000 && play.expiresAt == expires * 1_000)
            let pushQuery = try self.query(push.rtmp, "rtmp://192.0.2.1/live/cam1")
            let playQuery = try self.query(play.rtmp, "rtmp://192.0.2.1/live/cam1")
            #expect("\(push.server)/\(push.streamKey)" == push.rtmp && push.server == "rtmp://192.0.2.1/live")
            let pass = try door.ask(pushQuery, name: "cam1", at: expires - 1).get()
            #expect(pass.isVerified)
            if scheme == .jwt { #expect(pass.user == "alice" && pass.room == "cam1") }
            #expect(try door.ask(playQuery, name: "cam1", action: .play, at: expires - 1).pass != nil)
            for now in [expires, expires + 1] {
                #expect(try door.ask(pushQuery, name: "cam1", at: now).refusal == .credentialExpired)
                #expect(try door.ask(playQuery, name: "cam1", action: .play, at: now).refusal == .credentialExpired)
            }
            #expect(try door.ask(pushQuery, name: "cam1-2", at: expires - 1).refusal == .credentialWrong)
        }
    }

    @Test func aTokenForViewersDoesNotPush() throws {
        let signing = StreamURLs.Signing(scheme: .jwt, lifetimeSeconds: 60)
        let play = try self.query(Self.urls().play(self.path, signing, nowMs: self.nowMs).rtmp, "rtmp://192.0.2.1/live/cam1")
        #expect(try Doorkeeper().ask(play, name: "cam1", action: .publish).refusal == .credentialWrong)
        let push = try self.query(Self.urls().push(self.path, signing, nowMs: self.nowMs).rtmp, "rtmp://192.0.2.1/live/cam1")
        #expect(try Doorkeeper().ask(push, name: "cam1", action: .play).refusal == .credentialWrong)
    }

    @Test func partsOfASecondCountForTheHolder() throws {
        let push = try Self.urls().push(self.path, .init(scheme: .txSecret, lifetimeSeconds: 1), nowMs: self.nowMs + 1)
        #expect(push.expiresAt == self.nowMs + 2_000)
    }

    @Test(arguments: [Int64.min, -1, 0, 30 * 86_400 + 1, .max])
    func lifetimesOutOfRangeAreRefused(_ lifetime: Int64) {
        let error = #expect(throws: FieldError.self) {
            try Self.urls().push(self.path, .init(scheme: .txSecret, lifetimeSeconds: lifetime), nowMs: self.nowMs)
        }
        #expect(error?.field == "lifetime" && error?.rule == "expected 1 to 2592000 seconds")
    }

    @Test func aUserThatIsNoIDIsRefused() {
        let error = #expect(throws: FieldError.self) {
            try Self.urls().push(self.path, .init(scheme: .jwt, lifetimeSeconds: 60, user: "a b"), nowMs: self.nowMs)
        }
        #expect(error?.field == "userId")
    }

    @Test func withoutSigningURLsAreBare() throws {
        let play = try Self.urls(rtmps: 1936).play(self.path, nowMs: self.nowMs)
        let http = play.flv.dropLast(".flv".count)
        #expect(http.hasPrefix("http://192.0.2.1") && http.hasSuffix("/live/cam1"))
        #expect(
            play
                == .init(
                    rtmp: "rtmp://192.0.2.1/live/cam1", rtmps: "rtmps://192.0.2.1:1936/live/cam1", flv: "\(http).flv", hls: "\(http).m3u8",
                    hlsTS: "\(http).ts.m3u8", mp4: "\(http).mp4", whep: String(http).replacing("/live/cam1", with: "/whep/live/cam1"),
                    expiresAt: nil))
    }

    /// "/live/cam.ts.m3u8" is MPEG-TS of the stream "cam". The stream "cam.ts" has another address.
    @Test func aNameThatEndsLikeMPEGTS() throws {
        let play = try Self.urls().play(StreamPath(app: "live", name: "cam.ts"), nowMs: self.nowMs)
        #expect(play.hls.hasSuffix("/live/cam%2Ets.m3u8") && play.hlsTS.hasSuffix("/live/cam.ts.ts.m3u8"))
        #expect(play.flv.hasSuffix("/live/cam.ts.flv") && play.mp4.hasSuffix("/live/cam.ts.mp4"))
    }

    @Test func rtmpsCarriesTheSameCredential() throws {
        let push = try Self.urls(rtmps: 443).push(self.path, .init(scheme: .txSecret, lifetimeSeconds: 60), nowMs: self.nowMs)
        #expect(push.rtmps == push.rtmp.replacing("rtmp://", with: "rtmps://"))
        #expect(try Self.urls().push(self.path, .init(scheme: .txSecret, lifetimeSeconds: 60), nowMs: self.nowMs).rtmps == nil)
    }

    @Test func oddNamesAreEncodedAndStillFit() throws {
        let name = "a b/ü?#%&+"
        let push = try Self.urls().push(
            StreamPath(app: "live", name: name), .init(scheme: .txSecret, lifetimeSeconds: 60), nowMs: self.nowMs)
        let query = try self.query(push.rtmp, "rtmp://192.0.2.1/live/a%20b/%C3%BC%3F%23%25%26%2B")
        // The signature is over the decoded name. An address cannot have "?" in its name, so the rules are not asked.
        #expect(
            TxSecret.signature(key: TestCredential.keys.key, streamName: name, txTime: String(query.suffix(8)), hash: .md5)
                == query.split(separator: "=").dropFirst().first.map { String($0.prefix(32)) })
    }

    @Test func aTokenIsForAStreamOfAnyApp() throws {
        let signing = StreamURLs.Signing(scheme: .jwt, lifetimeSeconds: 60, room: try RoomID(checking: "cam1"))
        let push = try Self.urls().push(StreamPath(app: "event", name: "x"), signing, nowMs: self.nowMs)
        let query = try self.query(push.rtmp, "rtmp://192.0.2.1/event/x")
        #expect(try Doorkeeper().ask(query, app: "event", name: "x").pass?.room == nil)
    }

    /// Listener, Host header, and the beginning of the URLs.
    @Test(arguments: [
        ("127.0.0.1", nil as String?, "rtmp://127.0.0.1"), ("127.0.0.1", "live.example.com", "rtmp://127.0.0.1"),
        ("0.0.0.0", "live.example.com", "rtmp://live.example.com"), ("0.0.0.0", "live.example.com:8080", "rtmp://live.example.com"),
        ("0.0.0.0", "192.0.2.7:8080", "rtmp://192.0.2.7"), ("::", "[2001:db8::1]:8080", "rtmp://[2001:db8::1]"),
        ("::", "[2001:db8::1]", "rtmp://[2001:db8::1]"), ("0.0.0.0", nil, "rtmp://localhost"), ("::", "", "rtmp://localhost"),
        ("0.0.0.0", "evil.example/path", "rtmp://localhost"), ("0.0.0.0", "user@evil.example", "rtmp://localhost"),
        ("0.0.0.0", "a b", "rtmp://localhost"), ("0.0.0.0", "a\r\nb", "rtmp://localhost"), ("0.0.0.0", "a?b", "rtmp://localhost"),
        ("0.0.0.0", String(repeating: "a", count: 400), "rtmp://localhost"), ("2001:db8::5", nil, "rtmp://[2001:db8::5]"),
        ("media.internal", "live.example.com", "rtmp://media.internal"),
    ])
    func bases(_ listener: String, _ requestHost: String?, _ expected: String) {
        let address = PublicAddress(config: ServerConfig(), addresses: Self.addresses(listener), requestHost: requestHost)
        #expect(address.rtmp == expected)
        #expect(address.http == expected.replacing("rtmp://", with: "http://") + ":8080")
        #expect(address.rtmps == nil)
    }

    /// Listener, the address at which a request arrived, and the beginning of URLs for others: never the name that the caller chose.
    @Test(arguments: [
        ("127.0.0.1", "127.0.0.1", "rtmp://127.0.0.1"), ("192.0.2.1", "10.0.0.5", "rtmp://192.0.2.1"),
        ("0.0.0.0", "10.0.0.5", "rtmp://10.0.0.5"), ("::", "2001:db8::5", "rtmp://[2001:db8::5]"),
        ("0.0.0.0", nil as String?, "rtmp://localhost"),
    ])
    func forOthers(_ listener: String, _ arrivedAt: String?, _ expected: String) throws {
        let local = try arrivedAt.map { try SocketAddress(ipAddress: $0, port: 8_080) }
        let address = PublicAddress(forOthers: ServerConfig(), addresses: Self.addresses(listener), arrivedAt: local)
        #expect(address.rtmp == expected)
        var config = ServerConfig()
        config.urls.http = "https://class.example.com"
        let named = PublicAddress(forOthers: config, addresses: Self.addresses(listener), arrivedAt: local)
        #expect(named.http == "https://class.example.com")
    }

    @Test func portsAreShownWhereTheyAreNotUsual() {
        let address = PublicAddress(
            config: ServerConfig(), addresses: Self.addresses("192.0.2.1", rtmp: 19350, rtmps: 1936, http: 80), requestHost: nil)
        #expect(address == .init(rtmp: "rtmp://192.0.2.1:19350", rtmps: "rtmps://192.0.2.1:1936", http: "http://192.0.2.1"))
    }

    @Test func configuredBeginningsWin() {
        var config = ServerConfig()
        config.urls.rtmp = "rtmp://live.example.com:2935/"
        config.urls.rtmps = "rtmps://live.example.com"
        config.urls.http = "https://www.example.com//"
        let address = PublicAddress(config: config, addresses: Self.addresses(), requestHost: "other")
        #expect(address == .init(rtmp: "rtmp://live.example.com:2935", rtmps: "rtmps://live.example.com", http: "https://www.example.com"))
    }
}

extension PublicAddress {
    fileprivate init(rtmp: String, rtmps: String?, http: String) {
        var config = ServerConfig()
        config.urls.rtmp = rtmp
        config.urls.rtmps = rtmps
        config.urls.http = http
        let none = HostPort(host: "unused", port: 1)
        self.init(config: config, addresses: .init(rtmp: none, rtmps: nil, http: none), requestHost: nil)
    }
}
