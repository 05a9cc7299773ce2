#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Makes secrets as text and compares them in constant time. Pure except for the system's randomness.
package enum SecretText {
    /// 32 random bytes as 43 characters of `A–Z a–z 0–9 - _`.
    package static func random() -> String {
        var generator = SystemRandomNumberGenerator()
        return base64URL((0..<32).map { _ in UInt8.random(in: .min ... .max, using: &generator) })
    }

    /// Whether both are the same bytes. The time depends on the lengths only, which are not secret.
    package static func isEqual(_ left: some Collection<UInt8>, _ right: some Collection<UInt8>) -> Bool {
        guard left.count == right.count else { return false }
        var difference: UInt8 = 0
        for (one, other) in zip(left, right) { difference |= one ^ other }
        return difference == 0
    }

    /// Lower case, two digits a byte.
    package static func hex(_ bytes: some Sequence<UInt8>) -> String {
        let digits = Array("0123456789abcdef".utf8)
        var text: [UInt8] = []
        for byte in bytes {
            text.append(digits[Int(byte >> 4)])
            text.append(digits[Int(byte & 15)])
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Encodes RFC 4648 §5 without padding, as RFC 7515 §2 requires.
    package static func base64URL(_ bytes: some Collection<UInt8>) -> String {
        String(Data(bytes).base64EncodedString().compactMap { $0 == "=" ? nil : $0 == "+" ? "-" : $0 == "/" ? "_" : $0 })
    }
}
