internal import Crypto

/// Lets whoever is asked or told know that it was this server, and when: two headers beside the body.
///
/// ```
/// X-Earshot-Timestamp: 1795255200
/// X-Earshot-Signature: sha256=<hex of HMAC-SHA256(key, timestamp + "." + body)>
/// ```
///
/// The receiver computes the same over the bytes that it got, and refuses timestamps that are long past. Pure; any thread.
package enum OutboundSignature {
    /// `atSeconds` is the wall clock, since 1970; a body that is sent again is signed again.
    package static func headers(key: String, body: [UInt8], atSeconds: Int64) -> [(name: String, value: String)] {
        var mac = HMAC<SHA256>(key: SymmetricKey(data: Array(key.utf8)))
        mac.update(data: Array("\(atSeconds).".utf8))
        mac.update(data: body)
        return [
            ("X-Earshot-Timestamp", "\(atSeconds)"), ("X-Earshot-Signature", "sha256=\(SecretText.hex(Array(mac.finalize())))"),
        ]
    }
}
