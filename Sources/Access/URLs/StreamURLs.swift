package import Rooms
package import ServerConfiguration
package import Support
package import Talk

/// Makes push and play URLs, signed with the server's keys. ``AdmissionRules`` accepts them until they expire. Pure; any thread.
package struct StreamURLs: Sendable {
    /// The kind of credential in a URL.
    package enum Scheme: String, Sendable, CaseIterable { case txSecret, jwt }

    /// The kind, lifetime and holder of a credential.
    package struct Signing: Sendable, Equatable {
        package var scheme: Scheme
        /// 1 to 2,592,000 (30 days).
        package var lifetimeSeconds: Int64
        /// The JWT's holder, for takeovers, members and kicks.
        package var user: String?
        /// The stream's room, for a JWT.
        package var room: RoomID?

        package init(scheme: Scheme, lifetimeSeconds: Int64, user: String? = nil, room: RoomID? = nil) {
            self.scheme = scheme
            self.lifetimeSeconds = lifetimeSeconds
            self.user = user
            self.room = room
        }
    }

    /// The URLs for a push.
    package struct Push: Sendable, Equatable {
        /// Holds a credential, as all of these do. For the caller only; never logged.
        package let rtmp: String
        package let rtmps: String?
        /// `rtmp` in the two parts that encoders ask for: "rtmp://host/live", and the rest as `streamKey`.
        package let server: String
        package let streamKey: String
        /// WebRTC; nil while it is off.
        package let whip: String?
        /// Milliseconds since 1970. Checked when a push begins, never while it runs.
        package let expiresAt: Int64
    }

    /// The URLs for playing.
    package struct Play: Sendable, Equatable {
        package let rtmp: String
        package let rtmps: String?
        package let flv: String
        package let hls: String
        /// HLS with segments of MPEG-TS.
        package let hlsTS: String
        /// Fragmented MP4 without an end.
        package let mp4: String
        /// WebRTC; nil while it is off.
        package let whep: String?
        /// Milliseconds since 1970; nil when the URLs are not signed.
        package let expiresAt: Int64?
    }

    /// The token and URLs for a talk channel.
    package struct Talk: Sendable, Equatable {
        package let token: String
        package let publish: String
        package let play: String
        package let flv: String
        /// Fragmented MP4 without an end.
        package let mp4: String
        /// Milliseconds since 1970.
        package let expiresAt: Int64
    }

    package static let lifetimeSeconds: ClosedRange<Int64> = 1...(30 * 86_400)

    private let address: PublicAddress
    private let keys: KeyRing
    private let credentials: ServerConfig.Credentials

    package init(address: PublicAddress, keys: KeyRing, credentials: ServerConfig.Credentials) {
        self.address = address
        self.keys = keys
        self.credentials = credentials
    }

    /// Makes push URLs. `nowMs` is the wall clock, since 1970.
    /// Throws ``FieldError`` when the lifetime is out of range, the user is no id, or `jwtKey` is too short for a JWT.
    package func push(_ path: StreamPath, _ signing: Signing, nowMs: Int64) throws(FieldError) -> Push {
        let (query, expiresAt) = try self.credential(path, signing, act: "publish", nowMs)
        let name = Self.encode(path.name)
        let app = Self.encode(path.app)
        return Push(
            rtmp: "\(self.address.rtmp)/\(app)/\(name)?\(query)", rtmps: self.address.rtmps.map { "\($0)/\(app)/\(name)?\(query)" },
            server: "\(self.address.rtmp)/\(app)", streamKey: "\(name)?\(query)",
            whip: self.address.hasWebRTC ? "\(self.address.http)/whip/\(app)/\(name)?\(query)" : nil, expiresAt: expiresAt)
    }

    /// Makes play URLs. Without `signing` they hold no credential, for viewers who need none. Throws as ``push(_:_:nowMs:)`` does.
    package func play(_ path: StreamPath, _ signing: Signing? = nil, nowMs: Int64) throws(FieldError) -> Play {
        var query = ""
        var expiresAt: Int64?
        if let signing {
            let credential = try self.credential(path, signing, act: "play", nowMs)
            query = "?\(credential.query)"
            expiresAt = credential.expiresAt
        }
        let stream = "/\(Self.encode(path.app))/\(Self.encode(path.name))"
        let http = self.address.http + stream
        // "cam.ts.m3u8" is MPEG-TS of "cam"; a stream "cam.ts" is told from it by this spelling.
        let hls = path.name.lowercased().hasSuffix(".ts") ? "\(http.dropLast(3))%2E\(http.suffix(2))" : http
        return Play(
            rtmp: self.address.rtmp + stream + query, rtmps: self.address.rtmps.map { $0 + stream + query }, flv: "\(http).flv\(query)",
            hls: "\(hls).m3u8\(query)", hlsTS: "\(http).ts.m3u8\(query)", mp4: "\(http).mp4\(query)",
            whep: self.address.hasWebRTC ? "\(self.address.http)/whep\(stream)\(query)" : nil, expiresAt: expiresAt)
    }

    /// Makes a token and URLs for one participant of a room's talk channel. ``AccessToken`` lists the roles.
    package func talk(
        _ room: RoomID, _ user: ParticipantID, role: String, lifetimeSeconds: Int64, nowMs: Int64
    ) throws(FieldError) -> Talk {
        let expires = try Self.expiry(lifetimeSeconds, nowMs)
        let claims = AccessToken(expires: expires, issued: nowMs / 1_000, sub: user.rawValue, talk: room.rawValue, role: role)
        let (token, assignment) = try self.signed(claims, for: "token")
        let voice = "/\(TalkStreamName.path(room, .voice(user)))"
        let mix = "/\(TalkStreamName.path(room, .mixWithout(user)))"
        let (rtmp, http, query) = (self.address.rtmp, self.address.http, "?\(assignment)")
        return Talk(
            token: token, publish: rtmp + voice + query, play: rtmp + mix + query, flv: "\(http)\(mix).flv\(query)",
            mp4: "\(http)\(mix).mp4\(query)", expiresAt: expires * 1_000)
    }

    private static func expiry(_ lifetimeSeconds: Int64, _ nowMs: Int64) throws(FieldError) -> Int64 {
        guard self.lifetimeSeconds.contains(lifetimeSeconds) else {
            throw FieldError(
                "lifetime", "\(lifetimeSeconds)",
                "expected \(self.lifetimeSeconds.lowerBound) to \(self.lifetimeSeconds.upperBound) seconds")
        }
        // Rounds up to whole seconds: a URL for one second is valid for at least one.
        return (nowMs + 999) / 1_000 + lifetimeSeconds
    }

    /// The URL of an API call, by its path below "/api/v1/".
    package func api(_ path: String) -> String { "\(self.address.http)/api/v1/\(path)" }

    private func credential(
        _ path: StreamPath, _ signing: Signing, act: String, _ nowMs: Int64
    ) throws(FieldError) -> (query: String, expiresAt: Int64) {
        let expires = try Self.expiry(signing.lifetimeSeconds, nowMs)
        if let user = signing.user, !RoomID.isID(user) { throw FieldError("userId", user, "expected 1 to 64 of A-Z a-z 0-9 _ -") }
        switch signing.scheme {
        case .txSecret:
            let time = TxSecret.text(ofSeconds: expires)
            let key = act == "play" ? self.keys.playKey : self.keys.key
            let secret = TxSecret.signature(key: key, streamName: path.name, txTime: time, hash: self.credentials.hash)
            return ("txSecret=\(secret)&txTime=\(time)", expires * 1_000)
        case .jwt:
            // Leaves out a room that the stream's name does not fit: such a token would open nothing.
            let room = signing.room?.rawValue
            let token = AccessToken(
                expires: expires, issued: nowMs / 1_000, sub: signing.user,
                room: room.flatMap { AccessToken.opens($0, app: path.app, name: path.name) ? $0 : nil }, stream: "\(path)", act: [act])
            return (try self.signed(token, for: "scheme").query, expires * 1_000)
        }
    }

    /// The token, alone and as a parameter of a URL. `field`: what asks for it.
    private func signed(_ claims: AccessToken, for field: String) throws(FieldError) -> (token: String, query: String) {
        guard let name = self.credentials.tokenParameters.first else {
            throw FieldError(field, "jwt", "cannot be used: the setting credentials.tokenParameters is empty")
        }
        guard let token = try? claims.signed(with: self.keys) else {
            throw FieldError(field, "jwt", "cannot be used: the setting credentials.jwtKey is too short")
        }
        return (token, "\(name)=\(token)")
    }

    /// Percent-encodes all but unreserved characters and the slash (RFC 3986 §3.3, §2.3).
    package static func encode(_ text: String) -> String {
        var bytes: [UInt8] = []
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
                UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"), UInt8(ascii: "/"):
                bytes.append(byte)
            default: bytes += Array("%\(SecretText.hex([byte]).uppercased())".utf8)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
