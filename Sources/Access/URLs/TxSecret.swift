internal import Crypto
import ServerConfiguration
import Support

/// Tencent's signed URLs: `txSecret = hash(key + StreamName + txTime)`. `txTime` is the expiry, in hexadecimal seconds since 1970.
///
/// - The hash is MD5 (32 digits) or SHA-256 (64 digits), distinguished by length. Its digits are lower case, so that recomputed ones
///   compare equal and each signature has one spelling.
/// - `StreamName` is everything after the app: `alice` in `live/alice`, `room1/alice` in `talk/room1/alice`. The app is not signed.
/// - `txTime` is hashed exactly as sent: `5C271099` and `5c271099` give different signatures for the same time.
/// - `txTime` has exactly eight digits. The hashed text has no separators: `room12` + `5C271099` and `room1` + `25C271099` have the same
///   signature, so moving the border would open another stream, for longer. With a fixed length there is one way to read the text.
///
/// Source: tencentcloud.com/document/product/267/31059 and intl.cloud.tencent.com/document/product/267/31560. Pure; any thread.
enum TxSecret {
    typealias Hash = ServerConfig.Credentials.Hash

    /// The digest in lower-case hex.
    static func signature(key: String, streamName: String, txTime: String, hash: Hash) -> String {
        let text = Array((key + streamName + txTime).utf8)
        switch hash {
        case .md5: return SecretText.hex(Insecure.MD5.hash(data: text))
        case .sha256: return SecretText.hex(SHA256.hash(data: text))
        }
    }

    /// The `txTime` of a time, in upper case as in Tencent's examples.
    /// Clamps times that eight digits cannot hold; these end in the year 2106.
    static func text(ofSeconds seconds: Int64) -> String {
        String(hex: UInt32(clamping: seconds), digits: self.digits, uppercase: true)
    }

    /// Length of a `txTime`.
    private static let digits = 8

    /// Seconds since 1970; nil for anything but eight hex digits.
    static func seconds(_ txTime: String) -> Int64? {
        guard txTime.utf8.count == self.digits else { return nil }
        var seconds: Int64 = 0
        for byte in txTime.utf8 {
            guard let digit = PercentCoding.digit(byte) else { return nil }
            seconds = seconds << 4 | Int64(digit)
        }
        return seconds
    }

    /// Returns the URL's expiry in seconds since 1970. Throws the refusal when the URL is invalid, or expired at `nowSeconds`.
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
        // Always checks all keys, so that timing does not reveal which one is used.
        for key in keys {
            let expected = Array(self.signature(key: key, streamName: streamName, txTime: txTime, hash: hash).utf8)
            isRight = SecretText.isEqual(given, expected) || isRight
        }
        guard isRight else {
            throw AdmissionRefusal(
                reason: .credentialWrong,
                message: "txSecret does not match this stream and txTime; expected hash(key + stream name + txTime).")
        }
        // Checked after the signature, so that a stranger learns nothing about times.
        guard nowSeconds < seconds else {
            throw AdmissionRefusal(
                reason: .credentialExpired, message: "The URL expired \(nowSeconds - seconds) s ago (txTime \(seconds)); ask for a new one."
            )
        }
        return seconds
    }
}
