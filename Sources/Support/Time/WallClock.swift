#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The time of day, for credentials and for times that people read.
package enum WallClock {
    /// Milliseconds since 1970.
    package static var ms: Int64 { Int64(Date().timeIntervalSince1970 * 1_000) }
    /// Seconds since 1970.
    package static var seconds: Int64 { Int64(Date().timeIntervalSince1970) }
}
