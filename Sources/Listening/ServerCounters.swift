package import Support
import Synchronization

/// Totals since start. Any thread; updated per connection and per refusal, never per frame.
package final class ServerCounters: Sendable {
    package init() {}
    package struct Values: Sendable {
        package var connectionsAccepted: UInt64 = 0
        package var publishesStarted: UInt64 = 0
        package var playsStarted: UInt64 = 0
        /// Requests of players over HTTP that were held because nobody published yet.
        package var playsWaited: UInt64 = 0
        /// Publishers' messages that were skipped, because they could not be read or were too large to keep.
        package var messagesSkipped: UInt64 = 0
        package var closed: [CloseReason: UInt64] = [:]
        /// HTTP connections and forwarded requests beyond limits.httpConnections or limits.httpPerAddress.
        package var httpConnectionsRefused: UInt64 = 0
        /// Idle HTTP connections closed to make room for others.
        package var httpConnectionsShed: UInt64 = 0
        /// Connections closed on arrival, too many at once to send each an answer.
        package var connectionsTurnedAway: UInt64 = 0
        /// Subscribers refused because the event feed was full.
        package var eventFeedsRefused: UInt64 = 0
        /// Times that a subscriber was behind the events in memory and read the store.
        package var eventFeedsBehind: UInt64 = 0
        package var webhooksDelivered: UInt64 = 0
        /// Failed delivery attempts.
        package var webhookAttemptsFailed: UInt64 = 0
        package var webhooksGivenUp: UInt64 = 0
        /// Failed calls of the API without a line in the audit trail, because too many failed.
        package var auditLinesHeld: UInt64 = 0
    }

    /// Hits of limits, by their settings.
    package let limits = LimitHits()
    private let values = Mutex(Values())

    package var current: Values { self.values.withLock { $0 } }

    package func update(_ body: (inout Values) -> Void) { self.values.withLock { body(&$0) } }
}
