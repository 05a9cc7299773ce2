package import Access
import Crypto
import Foundation

/// Credentials as an application's back end makes them, without the server's code.
package enum TestCredential {
    /// `key` is from Tencent's own example.
    package static let keys = KeyRing(
        key: "e12c46f2612d5106e2034781ab261ca3", backupKey: "backup-key-0001", jwtKey: "0123456789abcdef0123456789abcdef",
        webhookKey: "hook-key")

    /// `txSecret=…&txTime=…`: the hash of key, stream name and time, in hexadecimal digits.
    package static func signed(
        _ name: String = "test", txTime: String = "7FFFFFFF", key: String = Self.keys.key, withSHA256: Bool = false
    ) -> String {
        let text = Data("\(key)\(name)\(txTime)".utf8)
        let digest = withSHA256 ? Array(SHA256.hash(data: text)) : Array(Insecure.MD5.hash(data: text))
        let secret = digest.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        return "txSecret=\(secret)&txTime=\(txTime)"
    }

    /// A JWT (RFC 7519) from two JSON texts, signed by HMAC with SHA-256 and a key that need not be the server's.
    package static func token(
        header: String = #"{"alg":"HS256","typ":"JWT"}"#, _ claims: String, key: String = Self.keys.jwtKey
    ) -> String {
        let signedPart = "\(Self.base64URL(Data(header.utf8))).\(Self.base64URL(Data(claims.utf8)))"
        let code = HMAC<SHA256>.authenticationCode(for: Data(signedPart.utf8), using: SymmetricKey(data: Data(key.utf8)))
        return "\(signedPart).\(Self.base64URL(Data(code)))"
    }

    /// Base64 with the URL's alphabet, without padding (RFC 4648 §5).
    private static func base64URL(_ data: Data) -> String {
        data.base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
    }
}
