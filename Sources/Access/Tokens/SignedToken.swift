internal import Crypto
internal import JWTKit
import Support

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// Signs and verifies this server's JWTs (RFC 7519), HS256 with its `jwtKey`. Pure; any thread.
///
/// jwt-kit verifies inside an actor, but checks run on an event loop, which must not wait. So swift-crypto's HMAC over the token's first
/// two parts checks the signature, and jwt-kit's serializer and parser, which are plain values, handle the JSON. This also means that no
/// part of a token is decoded before its signature is verified, whatever algorithm it names.
enum SignedToken {
    /// Bytes of a token's text. Longer ones are refused unread.
    static let maxBytes = 4_096
    /// The end of the year 9999, in seconds since 1970.
    private static let lastSecond = 253_402_300_799.0

    /// The compact form. Throws when the key is too short for HS256.
    static func text(_ claims: some JWTPayload, _ keys: KeyRing) throws -> String {
        guard keys.jwtKey.utf8.count >= KeyRing.leastJWTKeyBytes else {
            throw KeyFileError("the key for tokens has fewer than \(KeyRing.leastJWTKeyBytes) bytes (setting credentials.jwtKey)")
        }
        let serializer = DefaultJWTSerializer()
        let header = JWTHeader(fields: ["alg": .string("HS256"), "typ": .string("JWT")])
        let head = SecretText.base64URL([UInt8](try serializer.jsonEncoder.encode(header)))
        let signedPart = head + "." + String(decoding: try serializer.serialize(claims, header: header), as: UTF8.self)
        return signedPart + "." + self.signature(of: signedPart, key: keys.jwtKey)
    }

    /// The signature in base64url (RFC 7515 §5.1).
    static func signature(of text: String, keyBytes: [UInt8]) -> String {
        let code = HMAC<SHA256>.authenticationCode(for: Array(text.utf8), using: SymmetricKey(data: keyBytes))
        return SecretText.base64URL(Array(code))
    }

    static func signature(of text: String, key: String) -> String { self.signature(of: text, keyBytes: Array(key.utf8)) }

    /// Reads the claims of a token with a valid signature; the caller still checks their times. `expected` names the claims in messages.
    static func claims<Claims: JWTPayload>(_ token: String, _ keys: KeyRing, expected: String) throws(AdmissionRefusal) -> Claims {
        guard token.utf8.count <= self.maxBytes else {
            throw self.wrong("The token has \(token.utf8.count) bytes; expected \(self.maxBytes) at most.")
        }
        guard keys.jwtKey.utf8.count >= KeyRing.leastJWTKeyBytes else { throw self.wrong("The server accepts no tokens: it has no key.") }
        let parts = token.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3, !parts[0].isEmpty, !parts[1].isEmpty else {
            throw self.wrong("The token is not a JWT; expected three parts with a dot between them.")
        }
        // Compares text: base64 has several spellings of some bytes, and only one of them is the signature.
        let (signedPart, given) = ("\(parts[0]).\(parts[1])", Array(parts[2].utf8))
        var isRight = false
        // Always checks all keys, so that timing does not reveal which one is used.
        for key in keys.jwtKeys {
            isRight = SecretText.isEqual(given, Array(self.signature(of: signedPart, key: key).utf8)) || isRight
        }
        guard isRight else {
            throw self.wrong("The token's signature is invalid; expected HS256 with the server's key.")
        }
        do {
            let parsed = try DefaultJWTParser().parse(Array(token.utf8), as: Claims.self)
            // RFC 8725 §3.1; and RFC 7515 §4.1.11: no critical extension is supported.
            guard parsed.header.alg == "HS256", parsed.header.fields["crit"] == nil else { throw JWTError.noKeyProvided }
            return parsed.payload
        } catch {
            throw self.wrong("The token's claims cannot be read; expected \(expected).")
        }
    }

    /// Rejects times that are out of range. A NumericDate is a JSON number (RFC 7519 §2), which may be as large as 1e300; such a token, by mistake or
    /// on purpose, would never expire.
    static func checkTimes(exp: Date, nbf: Date? = nil, iat: Date? = nil, nowSeconds: Int64) throws(AdmissionRefusal) {
        for (name, date) in [("exp", exp), ("nbf", nbf), ("iat", iat)] as [(String, Date?)] {
            guard let seconds = date?.timeIntervalSince1970 else { continue }
            guard seconds.isFinite, abs(seconds) <= self.lastSecond else {
                throw self.wrong("The token's \(name) is not a time; expected seconds since 1970, at most \(Int64(self.lastSecond)).")
            }
        }
        let now = Double(nowSeconds)
        guard now < exp.timeIntervalSince1970 else {
            throw AdmissionRefusal(reason: .credentialExpired, message: "The token has expired (exp); ask for a new one.")
        }
        if let start = nbf?.timeIntervalSince1970, now < start { throw self.wrong("The token is not valid yet (nbf).") }
    }

    static func wrong(_ message: String) -> AdmissionRefusal { AdmissionRefusal(reason: .credentialWrong, message: message) }
}
