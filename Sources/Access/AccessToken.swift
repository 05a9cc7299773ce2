internal import Crypto
internal import JWTKit
import RTMP
internal import Rooms
import Support

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// A JWT (RFC 7519) that lets its holder push or play. Only HS256 with the server's `jwtKey` is accepted.
///
/// | claim | meaning |
/// |---|---|
/// | `exp` | required: seconds since 1970 from which the token has expired |
/// | `nbf` | seconds since 1970 before which the token is not valid |
/// | `room` | opens the room's streams: `live/<room>`, `live/<room>-2` … `live/<room>-8` |
/// | `stream` | opens one stream, `app/name`. One of `room`, `stream` and `talk` is required; each one given must fit |
/// | `talk` | opens only this room's talk channel; `room` opens it too |
/// | `sub` | the user, for takeovers; if it has the form of a user id, kicks and presence refer to this member |
/// | `act` | `"publish"`, `"play"` or a list of them |
/// | `role` | instead of `act`: publisher, host, owner, anchor, device: both; viewer, audience, spectator: play |
///
/// Without `act` and `role`, a token only allows playing. In a talk channel the roles guest and cohost may speak, too. Speaking there
/// requires the participant's name in `sub`, or a token for that one `stream`.
///
/// jwt-kit verifies inside an actor, but checks run on an event loop, which must not wait. So swift-crypto's HMAC over the token's first
/// two parts checks the signature, and jwt-kit's serializer and parser, which are plain values, handle the JSON. This also means that no
/// part of a token is decoded before its signature is verified, whatever algorithm it names. Pure; any thread.
struct AccessToken: JWTPayload, Equatable {
    var exp: ExpirationClaim
    var nbf: NotBeforeClaim?
    var iat: IssuedAtClaim?
    var sub: String?
    var room: String?
    var stream: String?
    var talk: String?
    var act: Actions?
    var role: String?

    /// `"publish"` or `["publish", "play"]`.
    struct Actions: Codable, Equatable, Sendable {
        var names: [String]

        init(_ names: [String]) { self.names = names }

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            do {
                self.names = [try container.decode(String.self)]
            } catch {
                self.names = try container.decode([String].self)
            }
        }

        func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            try container.encode(self.names)
        }
    }

    /// Bytes of a token's text. Longer ones are refused unread.
    static let maxBytes = 4_096
    /// The end of the year 9999, in seconds since 1970.
    private static let lastSecond = 253_402_300_799.0
    private static let roles: [String: Set<String>] = [
        "publisher": ["publish", "play"], "host": ["publish", "play"], "owner": ["publish", "play"], "anchor": ["publish", "play"],
        "device": ["publish", "play"], "viewer": ["play"], "audience": ["play"], "spectator": ["play"],
    ]
    /// Roles that may speak in a talk channel, but not push a stream.
    private static let talkRoles: Set<String> = ["cohost", "guest"]

    /// Times are in seconds since 1970.
    init(
        expires: Int64, notBefore: Int64? = nil, issued: Int64? = nil, sub: String? = nil, room: String? = nil, stream: String? = nil,
        talk: String? = nil, act: [String]? = nil, role: String? = nil
    ) {
        func date(_ seconds: Int64) -> Date { Date(timeIntervalSince1970: Double(seconds)) }
        self.exp = ExpirationClaim(value: date(expires))
        self.nbf = notBefore.map { NotBeforeClaim(value: date($0)) }
        self.iat = issued.map { IssuedAtClaim(value: date($0)) }
        self.sub = sub
        self.room = room
        self.stream = stream
        self.talk = talk
        self.act = act.map(Actions.init)
        self.role = role
    }

    /// Required by jwt-kit, for its own verification. ``init(verifying:keys:nowSeconds:)`` uses the given clock instead.
    func verify(using algorithm: some JWTAlgorithm) throws { try self.exp.verifyNotExpired() }

    // MARK: Signing

    /// The compact form. Throws when the key is too short for HS256.
    func signed(with keys: KeyRing) throws -> String {
        guard keys.jwtKey.utf8.count >= KeyRing.leastJWTKeyBytes else {
            throw KeyFileError("the key for tokens has fewer than \(KeyRing.leastJWTKeyBytes) bytes (setting credentials.jwtKey)")
        }
        let serializer = DefaultJWTSerializer()
        let header = JWTHeader(fields: ["alg": .string("HS256"), "typ": .string("JWT")])
        let head = SecretText.base64URL([UInt8](try serializer.jsonEncoder.encode(header)))
        let signedPart = head + "." + String(decoding: try serializer.serialize(self, header: header), as: UTF8.self)
        return signedPart + "." + Self.signature(of: signedPart, key: keys.jwtKey)
    }

    /// The signature in base64url (RFC 7515 §5.1).
    static func signature(of text: String, keyBytes: [UInt8]) -> String {
        let code = HMAC<SHA256>.authenticationCode(for: Array(text.utf8), using: SymmetricKey(data: keyBytes))
        return SecretText.base64URL(Array(code))
    }

    static func signature(of text: String, key: String) -> String { self.signature(of: text, keyBytes: Array(key.utf8)) }

    // MARK: Checking

    /// Reads the claims of a token that is valid now. Throws the refusal otherwise.
    init(verifying token: String, keys: KeyRing, nowSeconds: Int64) throws(AdmissionRefusal) {
        guard token.utf8.count <= Self.maxBytes else {
            throw Self.wrong("The token has \(token.utf8.count) bytes; expected \(Self.maxBytes) at most.")
        }
        guard keys.jwtKey.utf8.count >= KeyRing.leastJWTKeyBytes else { throw Self.wrong("The server accepts no tokens: it has no key.") }
        let parts = token.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3, !parts[0].isEmpty, !parts[1].isEmpty else {
            throw Self.wrong("The token is not a JWT; expected three parts with a dot between them.")
        }
        // Compares text: base64 has several spellings of some bytes, and only one of them is the signature.
        let expected = Self.signature(of: "\(parts[0]).\(parts[1])", key: keys.jwtKey)
        guard SecretText.isEqual(Array(parts[2].utf8), Array(expected.utf8)) else {
            throw Self.wrong("The token's signature is invalid; expected HS256 with the server's key.")
        }
        do {
            let parsed = try DefaultJWTParser().parse(Array(token.utf8), as: Self.self)
            // RFC 8725 §3.1; and RFC 7515 §4.1.11: no critical extension is supported.
            guard parsed.header.alg == "HS256", parsed.header.fields["crit"] == nil else { throw JWTError.noKeyProvided }
            self = parsed.payload
        } catch {
            throw Self.wrong("The token's claims cannot be read; expected exp (a number), room or stream, and act or role.")
        }
        // RFC 7519 §2: a NumericDate is a JSON number, which may be as large as 1e300. Such a time, a slip or a trick, would never end.
        for (name, date) in [("exp", self.exp.value), ("nbf", self.nbf?.value), ("iat", self.iat?.value)] as [(String, Date?)] {
            guard let seconds = date?.timeIntervalSince1970 else { continue }
            guard seconds.isFinite, abs(seconds) <= Self.lastSecond else {
                throw Self.wrong("The token's \(name) is not a time; expected seconds since 1970, at most \(Int64(Self.lastSecond)).")
            }
        }
        let now = Double(nowSeconds)
        guard now < self.exp.value.timeIntervalSince1970 else {
            throw AdmissionRefusal(reason: .credentialExpired, message: "The token has expired (exp); ask for a new one.")
        }
        if let start = self.nbf?.value.timeIntervalSince1970, now < start { throw Self.wrong("The token is not valid yet (nbf).") }
    }

    /// Throws unless the token allows this action on this stream.
    func check(_ action: AdmissionRequest.Action, _ address: StreamAddress) throws(AdmissionRefusal) {
        let allowed: Set<String>
        if let act = self.act {
            allowed = Set(act.names)
        } else if let role = self.role {
            let isTalk = address.app == TalkStreamName.app && Self.talkRoles.contains(role.lowercased())
            guard let actions = isTalk ? ["publish", "play"] : Self.roles[role.lowercased()] else {
                let known = (Self.roles.keys + (address.app == TalkStreamName.app ? Array(Self.talkRoles) : [])).sorted()
                throw Self.wrong("The token's role is unknown here; expected one of \(known.joined(separator: ", ")).")
            }
            allowed = actions
        } else {
            allowed = ["play"]
        }
        guard allowed.contains(action.rawValue) else {
            throw Self.wrong("The token does not allow \(action.rawValue); expected it in the claim act, or a role that allows it.")
        }
        guard self.room != nil || self.stream != nil || self.talk != nil else {
            throw Self.wrong("The token opens no stream; expected the claim room, stream or talk.")
        }
        if let talk = self.talk, !Self.opensTalk(talk, address) { throw Self.wrong("The token is for another room's talk channel.") }
        if action == .publish, address.app == TalkStreamName.app {
            if let sub = self.sub, RoomID.isID(sub) {
                guard address.name.hasSuffix("/\(sub)") else {
                    throw Self.wrong("The token is for another participant: it may publish talk/<room>/\(sub).")
                }
            } else if self.stream == nil {
                throw Self.wrong("The token names no participant; expected the participant's name in the claim sub.")
            }
        }
        if let stream = self.stream, stream != address.path { throw Self.wrong("The token is for another stream.") }
        if let room = self.room, !Self.opens(room, app: address.app, name: address.name) {
            throw Self.wrong("The token is for another room.")
        }
    }

    /// Whether one of the room's slots has this name.
    static func opens(_ room: String, app: String, name: String) -> Bool {
        guard RoomID.isID(room) else { return false }
        if app == TalkStreamName.app { return name.hasPrefix("\(room)/") }
        guard app == "live" else { return false }
        return name == room || (2...8).contains { name == "\(room)-\($0)" }
    }

    private static func opensTalk(_ room: String, _ address: StreamAddress) -> Bool {
        RoomID.isID(room) && address.app == TalkStreamName.app && address.name.hasPrefix("\(room)/")
    }

    private static func wrong(_ message: String) -> AdmissionRefusal {
        AdmissionRefusal(reason: .credentialWrong, message: message)
    }
}
