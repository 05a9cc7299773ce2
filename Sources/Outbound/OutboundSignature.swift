internal import Crypto
import Support

/// Signs the server's own requests with two headers, which prove sender and time.
///
/// ```
/// X-Earshot-Timestamp: 1795255200
/// X-Earshot-Signature: sha256=<hex of HMAC-SHA256(key, timestamp + "." + body)>
/// ```
///
/// The receiver computes the same over the bytes that it got, and refuses old timestamps. Pure; any thread.
package enum OutboundSignature {
    /// `atSeconds`: wall clock, in seconds since 1970. A body that is sent again is signed again.
    package static func headers(key: String, body: [UInt8], atSeconds: Int64) -> [(name: String, value: String)] {
        var mac = HMAC<SHA256>(key: SymmetricKey(data: Array(key.utf8)))
        mac.update(data: Array("\(atSeconds).".utf8))
        mac.update(data: body)
        return [
            ("X-Earshot-Timestamp", "\(atSeconds)"), ("X-Earshot-Signature", "sha256=\(SecretText.hex(Array(mac.finalize())))"),
        ]
    }
}
