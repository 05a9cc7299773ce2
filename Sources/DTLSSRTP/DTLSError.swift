internal import COpenSSL

/// Why DTLS or SRTP cannot go on.
package enum DTLSError: Error, Equatable, CustomStringConvertible {
    /// libssl does not do what it always does, for want of memory or of an algorithm.
    case library(String)
    /// The peer's handshake failed.
    case handshake(String)
    /// The peer's certificate is not the one that its offer named.
    case wrongFingerprint
    /// The peer offers no SRTP profile that is known here.
    case noProfile

    package var description: String {
        switch self {
        case .library(let why): "libssl: \(why)"
        case .handshake(let why): "DTLS handshake: \(why)"
        case .wrongFingerprint: "the certificate in the DTLS handshake is not the one whose fingerprint the offer has"
        case .noProfile: "the peer offers neither SRTP_AEAD_AES_128_GCM nor SRTP_AES128_CM_HMAC_SHA1_80"
        }
    }

    /// The newest error of libssl's queue in words; empties the queue.
    static func latest(_ what: String) -> String {
        var words = what
        while true {
            let code = ERR_get_error()
            guard code != 0 else { return words }
            if let reason = ERR_reason_error_string(code) { words = "\(what): \(String(cString: reason))" }
        }
    }
}
