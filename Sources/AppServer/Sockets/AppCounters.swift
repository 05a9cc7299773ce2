import Synchronization

/// Totals of the apps' connections since start. Any thread.
package final class AppCounters: Sendable {
    /// Why the server cut a connection.
    package enum Cut: String, Sendable, CaseIterable {
        case tooSlow = "too_slow"
        case tooMany = "too_many_messages"
        case badMessages = "bad_messages"
        case protocolError = "protocol_error"
        /// No answer to pings: the peer is gone without a word.
        case silent
    }

    package struct Values: Sendable {
        /// Now open.
        package var connections = 0
        package var messages: UInt64 = 0
        package var badMessages: UInt64 = 0
        /// Frames for somebody who is not in the sender's room.
        package var undelivered: UInt64 = 0
        package var cut: [Cut: UInt64] = [:]
        /// Calls of the cloud's API, by the error's code; "" for those that succeeded.
        package var tencentCalls: [String: UInt64] = [:]
        package var heartbeats: UInt64 = 0
        /// Calls of RongCloud's API without a good answer, each try counted.
        package var rongCloudFailed: UInt64 = 0
        /// Calls given up because too many waited, or waited too long.
        package var rongCloudDropped: UInt64 = 0
    }

    private let values = Mutex(Values())

    package init() {}

    package var current: Values { self.values.withLock { $0 } }

    package func update(_ body: (inout Values) -> Void) { self.values.withLock { body(&$0) } }
}
