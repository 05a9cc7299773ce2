internal import Crypto

/// Tencent's signed URL: `txSecret = hash(key + StreamName + txTime)`, `txTime` = hexadecimal seconds since 1970 until which it is good.
///
/// - The hash is MD5 (32 digits) or SHA-256 (64 digits), told apart by length. Digits of the digest are lower case: what anyone computes
///   anew compares equal, and each signature has one spelling.
/// - `StreamName` is all that follows the app: `alice` of `live/alice`, `room1/alice` of `talk/room1/alice`. The app is not signed.
/// - `txTime` goes into the hash exactly as sent: `5C271099` and `5c271099` are different signatures for the same time.
/// - `txTime` has exactly eight digits. The text that is hashed has no separators: of `room12` + `5C271099` and `room1` + `25C271099` the
///   signature is the same, and whoever may move that border has another stream, for longer. With a fixed length there is one way to read it.
///
/// Source: tencentcloud.com/document/product/267/31059 and intl.cloud.tencent.com/document/product/267/31560. Pure; any thread.
enum TxSecret {
    typealias Hash = ServerConfig.Credentials.Hash

    /// Lower-case hex of the digest.
    static func signature(key: String, streamName: String, txTime: String, hash: Hash) -> String {
        let text = Array((key + streamName + txTime).utf8)
        switch hash {
        case .md5: return SecretText.hex(Insecure.MD5.hash(data: text))
        case .sha256: return SecretText.hex(SHA256.hash(data: text))
        }
    }

    /// `txTime` of a time, as it is written in URLs made here: upper case, as in Tencent's examples.
    /// Times that eight digits cannot hold become the nearest that they can: the year 2106 ends them.
    static func text(ofSeconds seconds: Int64) -> String {
        let digits = String(UInt32(clamping: seconds), radix: 16, uppercase: true)
        return String(repeating: "0", count: self.digits - digits.utf8.count) + digits
    }

    /// Of a `txTime`.
    private static let digits = 8

    /// Seconds since 1970; nil for anything but eight hex digits.
    static func seconds(_ txTime: String) -> Int64? {
        guard txTime.utf8.count == self.digits else { return nil }
        var seconds: Int64 = 0
        for byte in txTime.utf8 {
            guard let digit = QueryParameters.hexDigit(byte) else { return nil }
            seconds = seconds << 4 | Int64(digit)
        }
        return seconds
    }

    /// The time until which the URL is good, at most `nowSeconds` before it is over. Throws why it is not accepted.
    static func check(
        _ txSecret: String, txTime: String?, streamName: String, keys: [String], nowSeconds: Int64
    ) throws(AdmissionRefusal) -> Int64 {
        guard let txTime else {
            throw AdmissionRefusal(
                reason: .credentialNoTime, message: "The URL has txSecret without txTime; expected both, as txSecret=…&txTime=…")
        }
        guard let seconds = self.seconds(txTime) else {
            throw AdmissionRefusal(
                reason: .credentialWrong,
                message: "txTime is not a time of exactly \(self.digits) hexadecimal digits, seconds since 1970, such as 5C271099.")
        }
        let given = Array(txSecret.utf8)
        let hash: Hash? =
            switch given.count {
            case 32: .md5
            case 64: .sha256
            default: nil
            }
        guard let hash else {
            throw AdmissionRefusal(
                reason: .credentialWrong, message: "txSecret has \(given.count) characters; expected 32 (MD5) or 64 (SHA-256) hex digits.")
        }
        var isRight = false
        // All keys always, so that time does not tell which of them is in use.
        for key in keys {
            let expected = Array(self.signature(key: key, streamName: streamName, txTime: txTime, hash: hash).utf8)
            isRight = SecretText.isEqual(given, expected) || isRight
        }
        guard isRight else {
            throw AdmissionRefusal(
                reason: .credentialWrong,
                message: "txSecret does not fit this stream and txTime; expected hash(key + stream name + txTime).")
        }
        // After the signature: a stranger learns nothing about times.
        guard nowSeconds < seconds else {
            throw AdmissionRefusal(
                reason: .credentialExpired, message: "The URL expired \(nowSeconds - seconds) s ago (txTime \(seconds)); ask for a new one."
            )
        }
        return seconds
    }
}
