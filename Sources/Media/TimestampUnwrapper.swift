/// Extends RTMP's wrapping 32-bit milliseconds to a continuous 64-bit timeline.
///
/// Owned by the reader of one message stream; a plain value. RTMP 1.0 §5 ("Byte Order, Alignment, and Time Format"): timestamps roll over
/// every 49 days 17 h, so two adjacent ones are compared by their signed 32-bit difference.
package struct TimestampUnwrapper: Sendable, Equatable {
    /// The last value returned, in milliseconds; nil before the first.
    package private(set) var last: Int64?

    package init() {}

    /// Unwraps a timestamp and remembers the result. The first is returned unchanged; a later one becomes the value nearest to its
    /// predecessor: less than 2³¹ ms ahead (across the wrap too) goes on, anything else goes back. May become negative when a stream starts
    /// near 0 and steps back over it.
    package mutating func unwrap(_ timestamp: UInt32) -> Int64 {
        let unwrapped = self.peek(timestamp)
        self.last = unwrapped
        return unwrapped
    }

    /// Unwraps without remembering: for headers and metadata, whose time often is 0 in the middle of a stream.
    package func peek(_ timestamp: UInt32) -> Int64 {
        guard let last else { return Int64(timestamp) }
        let difference = Int32(bitPattern: timestamp &- UInt32(truncatingIfNeeded: last))
        return last &+ Int64(difference)
    }

    /// Returns the 32 bits on the wire for an unwrapped time.
    package static func wrap(_ timestampMs: Int64) -> UInt32 { UInt32(truncatingIfNeeded: timestampMs) }
}
