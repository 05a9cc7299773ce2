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
/// ``SignedToken`` signs and verifies. Pure; any thread.
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
    /// The token's audience (RFC 7519 §4.1.3). A channel's token (``ChannelToken``) is valid for nothing else.
    var aud: Actions?

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

    /// Required by jwt-kit, for its own verification. ``checkTimes(nowSeconds:)`` uses the given clock instead.
    func verify(using algorithm: some JWTAlgorithm) throws { try self.exp.verifyNotExpired() }

    // MARK: Signing

    /// The compact form. Throws when the key is too short for HS256.
    func signed(with keys: KeyRing) throws -> String { try SignedToken.text(self, keys) }

    // MARK: Checking

    /// Reads the claims of a token that was signed with one of these keys, whatever its purpose or age. Throws the refusal otherwise.
    init(signed token: String, keys: KeyRing) throws(AdmissionRefusal) {
        self = try SignedToken.claims(token, keys, expected: "exp (a number), room or stream, and act or role")
        for (claim, text) in [("sub", self.sub), ("room", self.room), ("stream", self.stream), ("talk", self.talk)] {
            if let problem = text.flatMap(NameForm.problem) { throw Self.wrong("The token's \(claim) \(problem).") }
        }
    }

    /// Throws unless the token is valid at this time.
    func checkTimes(nowSeconds: Int64) throws(AdmissionRefusal) {
        try SignedToken.checkTimes(exp: self.exp.value, nbf: self.nbf?.value, iat: self.iat?.value, nowSeconds: nowSeconds)
    }

    /// Throws unless the token allows this action on this stream.
    func check(_ action: AdmissionRequest.Action, _ address: StreamAddress) throws(AdmissionRefusal) {
        if self.aud?.names.contains(ChannelToken.audience) == true {
            throw Self.wrong("The token is for a channel (aud); it opens no stream.")
        }
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
        if let stream = self.stream, stream.exact != address.path.exact { throw Self.wrong("The token is for another stream.") }
        if let room = self.room, !Self.opens(room, app: address.app, name: address.name) {
            throw Self.wrong("The token is for another room.")
        }
    }

    /// Whether one of the room's slots has this name.
    static func opens(_ room: String, app: String, name: String) -> Bool {
        guard RoomID.isID(room) else { return false }
        if app == TalkStreamName.app { return name.hasPrefix("\(room)/") }
        guard app == "live" else { return false }
        return name.exact == room.exact || (2...8).contains { name.exact == "\(room)-\($0)".exact }
    }

    private static func opensTalk(_ room: String, _ address: StreamAddress) -> Bool {
        RoomID.isID(room) && address.app == TalkStreamName.app && address.name.hasPrefix("\(room)/")
    }

    private static func wrong(_ message: String) -> AdmissionRefusal { SignedToken.wrong(message) }
}
