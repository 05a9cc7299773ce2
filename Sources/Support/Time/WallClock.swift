#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The time of day, for credentials and for what people read.
package enum WallClock {
    /// Milliseconds since 1970.
    package static var ms: Int64 { Int64(Date().timeIntervalSince1970 * 1_000) }
    /// Seconds since 1970.
    package static var seconds: Int64 { Int64(Date().timeIntervalSince1970) }

    /// "2026-11-21T10:00:00.000Z" for milliseconds since 1970.
    package static func text(_ ms: Int64) -> String {
        let (seconds, rest) = ms.quotientAndRemainder(dividingBy: 1_000)
        let date = Date(timeIntervalSince1970: Double(seconds))
        let style = Date.ISO8601FormatStyle(timeZone: .gmt).year().month().day().time(includingFractionalSeconds: false)
        let digits = String(1_000 + max(0, rest)).dropFirst()
        return date.formatted(style) + ".\(digits)Z"
    }
}
