import Crypto
package import ServerConfiguration
package import Support

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension ServerConfig.ICE {
    /// The servers as a browser's `RTCPeerConnection` takes them: a list of `RTCIceServer` (W3C WebRTC §4.2.2). TURN servers without a credential are
    /// left out, because browsers refuse to connect at all with one.
    ///
    /// `user` is who will use them, in `A–Z a–z 0–9 _ -`; nil if unknown.
    package func servers(for user: String?, nowSeconds: Int64) -> JSONValue {
        func urls(_ isStun: Bool) -> JSONValue {
            .array(self.urls.filter { $0.hasPrefix(Self.stun) == isStun }.map { .string($0) })
        }
        var servers: [JSONValue] = []
        if self.urls.contains(where: { $0.hasPrefix(Self.stun) }) { servers.append(["urls": urls(true)]) }
        if self.hasTURN, let (username, credential) = self.credential(for: user, nowSeconds: nowSeconds) {
            servers.append(["urls": urls(false), "username": .string(username), "credential": .string(credential)])
        }
        return .array(servers)
    }

    /// The same as values of the header Link (RFC 9725 §4.6).
    package func links(for user: String?, nowSeconds: Int64) -> [String] {
        let credential = self.hasTURN ? self.credential(for: user, nowSeconds: nowSeconds) : nil
        return self.urls.compactMap { url in
            if url.hasPrefix(Self.stun) { return "<\(url)>; rel=\"ice-server\"" }
            guard let credential,
                ![credential.username, credential.credential].contains(where: { $0.contains { $0 == "\"" || $0 == "\\" } })
            else {
                return nil
            }
            return "<\(url)>; rel=\"ice-server\"; username=\"\(credential.username)\"; credential=\"\(credential.credential)\";"
                + " credential-type=\"password\""
        }
    }

    /// The form of "A REST API For Access To TURN Services" (draft-uberti-behave-turn-rest-00 §2.2): the time of expiry in seconds since 1970, with
    /// the user, and the HMAC-SHA1 of that by the shared secret.
    private func credential(for user: String?, nowSeconds: Int64) -> (username: String, credential: String)? {
        guard let secret = self.secret else {
            guard let username = self.username, let credential = self.credential else { return nil }
            return (username, credential)
        }
        let username = "\(nowSeconds + self.lifetimeMs / 1_000)" + (user.map { ":\($0)" } ?? "")
        let code = HMAC<Insecure.SHA1>.authenticationCode(for: Array(username.utf8), using: SymmetricKey(data: Array(secret.utf8)))
        return (username, Data(code).base64EncodedString())
    }
}
