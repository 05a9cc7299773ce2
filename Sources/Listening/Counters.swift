package import Support
import Synchronization

/// Totals since start. Any thread; updated per connection and per refusal, never per frame.
package final class Counters: Sendable {
    package init() {}
    package struct Values: Sendable {
        package var connectionsAccepted: UInt64 = 0
        package var publishesStarted: UInt64 = 0
        package var playsStarted: UInt64 = 0
        /// Requests of players over HTTP that were held because nobody published yet.
        package var playsWaited: UInt64 = 0
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

    package func update(_ body: (inout Values) -> Void) {
        self.values.withLock { body(&$0) }
    }
}

/// Counts connections in total and per address, and publishers. Any thread.
package final class ConnectionAdmission: Sendable {
    private struct State {
        var total = 0
        /// The highest total since ``takeHighest()``.
        var highest = 0
        var perAddress: [String: Int] = [:]
        var publishers = 0
        var totalLimit: Int
        var addressLimit: Int
    }

    private let state: Mutex<State>

    package init(total: Int, perAddress: Int) {
        self.state = Mutex(State(totalLimit: total, addressLimit: perAddress))
    }

    /// Connections beyond a lower limit stay.
    package func set(total: Int, perAddress: Int) {
        self.state.withLock { ($0.totalLimit, $0.addressLimit) = (total, perAddress) }
    }

    /// Returns nil if admitted; pair with `leave`.
    package func enter(_ address: String) -> CloseReason? {
        self.state.withLock { state in
            if state.total >= state.totalLimit { return .tooManyConnections }
            if state.perAddress[address, default: 0] >= state.addressLimit { return .tooManyFromAddress }
            state.total += 1
            state.highest = max(state.highest, state.total)
            state.perAddress[address, default: 0] += 1
            return nil
        }
    }

    package func leave(_ address: String) {
        self.state.withLock { state in
            state.total -= 1
            let count = state.perAddress[address, default: 1] - 1
            state.perAddress[address] = count > 0 ? count : nil
        }
    }

    /// Connections and publishers admitted now.
    package var current: (connections: Int, publishers: Int) { self.state.withLock { ($0.total, $0.publishers) } }

    /// The most connections at a time since the last call: a burst may be over before anybody looks.
    package func takeHighest() -> Int {
        self.state.withLock { state in
            defer { state.highest = state.total }
            return state.highest
        }
    }

    package func enterPublisher(limit: Int) -> Bool {
        self.state.withLock { state in
            guard state.publishers < limit else { return false }
            state.publishers += 1
            return true
        }
    }

    package func leavePublisher() {
        self.state.withLock { $0.publishers -= 1 }
    }
}
