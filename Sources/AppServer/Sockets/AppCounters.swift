import Synchronization

/// Totals of the apps' connections since start. Any thread.
package final class AppCounters: Sendable {
    /// Why the server cut a connection.
    package enum Cut: String, Sendable, CaseIterable {
        case tooSlow = "too_slow"
        case tooMany = "too_many_messages"
        case badMessages = "bad_messages"
        case protocolError = "protocol_error"
        /// The peer does not answer pings.
        case silent
        /// Its address makes the server hold more than its share of limits.memory.
        case memory = "memory_limit"
    }

    package struct Values: Sendable {
        /// Now open.
        package var connections = 0
        package var messages: UInt64 = 0
        package var badMessages: UInt64 = 0
        /// Frames for a receiver that is not in the sender's room.
        package var undelivered: UInt64 = 0
        package var cut: [Cut: UInt64] = [:]
        /// Calls of the cloud's API by error code; "" for successes.
        package var tencentCalls: [String: UInt64] = [:]
        package var heartbeats: UInt64 = 0
        /// Failed attempts at calls of RongCloud's API, each counted.
        package var rongCloudFailed: UInt64 = 0
        /// Calls dropped because too many waited, or because they waited too long.
        package var rongCloudDropped: UInt64 = 0
    }

    private let values = Mutex(Values())

    package var current: Values { self.values.withLock { $0 } }

    package func update(_ body: (inout Values) -> Void) { self.values.withLock { body(&$0) } }
}
