internal import JWTKit
import Rooms
import Support

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// A JWT (RFC 7519) that lets its holder into a gathering: a channel, or a mesh room. HS256 with the server's `jwtKey`, as all of its tokens.
///
/// | claim | meaning |
/// |---|---|
/// | `aud` | `"channel"`: neither pushes nor plays accept such a token, and no other token opens a channel |
/// | `sub` | the member's id, 1 to 64 of `A–Z a–z 0–9 _ -` |
/// | `name` | the name that others see; as `sub` when absent |
/// | `room` | the room |
/// | `kind` | the kind of gathering: `plain`, or `mesh` |
/// | `role` | `host` may act for others |
/// | `exp` | seconds since 1970 from which it has expired; checked when a connection begins |
package struct ChannelToken: Sendable, Equatable {
    package let user: String
    package let name: String
    package let room: String
    package let kind: String
    package let role: String
    /// Seconds since 1970.
    package let expires: Int64

    package init(user: String, name: String, room: String, kind: String, role: String, expires: Int64) {
        self.user = user
        self.name = name
        self.room = room
        self.kind = kind
        self.role = role
        self.expires = expires
    }

    static let audience = "channel"

    private struct Claims: JWTPayload {
        var aud: String
        var sub: String
        var name: String?
        var room: String
        var kind: String?
        var role: String?
        var exp: ExpirationClaim

        /// Required by jwt-kit, for its own verification.
        func verify(using algorithm: some JWTAlgorithm) throws { try self.exp.verifyNotExpired() }
    }

    /// The compact form. Throws when the key is too short for HS256.
    package func signed(with keys: KeyRing) throws -> String {
        let claims = Claims(
            aud: Self.audience, sub: self.user, name: self.name, room: self.room, kind: self.kind, role: self.role,
            exp: ExpirationClaim(value: Date(timeIntervalSince1970: Double(self.expires))))
        return try SignedToken.text(claims, keys)
    }

    /// Reads a token that is valid now. Throws the refusal otherwise.
    package init(verifying token: String, keys: KeyRing, nowSeconds: Int64) throws(AdmissionRefusal) {
        let claims: Claims = try SignedToken.claims(token, keys, expected: "aud (\"channel\"), sub, room and exp")
        guard claims.aud == Self.audience else {
            throw SignedToken.wrong("The token is not for a channel; expected \"channel\" in the claim aud.")
        }
        guard RoomID.isID(claims.sub) else { throw SignedToken.wrong("The token's sub is no id; expected 1 to 64 of A-Z a-z 0-9 _ -.") }
        for (claim, text) in [("room", claims.room), ("name", claims.name)] {
            if let problem = text.flatMap(NameForm.problem) { throw SignedToken.wrong("The token's \(claim) \(problem).") }
        }
        try SignedToken.checkTimes(exp: claims.exp.value, nowSeconds: nowSeconds)
        self.init(
            user: claims.sub, name: claims.name ?? claims.sub, room: claims.room, kind: claims.kind ?? "plain", role: claims.role ?? "",
            expires: Int64(claims.exp.value.timeIntervalSince1970))
    }
}
