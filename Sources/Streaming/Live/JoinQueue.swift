import Access
import Listening
import NIOCore
package import Relay
import Support

/// Queues new viewers until their loop accepts some again, for two seconds at most. Loop-bound; owned by the loop's context.
package final class JoinQueue {
    private struct Waiting {
        let deadlineMs: Int64
        package let decide: (Bool) -> Void
    }

    private let relay: RelayLoop
    private var waiting: [Waiting] = []
    private var isClosed = false

    /// How long a viewer waits before it is refused.
    package static let patienceMs = AcceptGate.patienceMs
    /// Seconds after which a refused viewer should try again.
    package static let retrySeconds = 2
    /// Message for viewers that are refused or dropped.
    package static let refusal = "The server already has as many viewers as it can serve in time; try again in a moment."
    /// Largest queue; further viewers are refused at once.
    private static let most = 1_000

    package init(_ relay: RelayLoop) { self.relay = relay }

    /// Whether a viewer may join without waiting.
    package var isOpen: Bool { self.waiting.isEmpty && self.relay.pressure.level < .overloaded }

    /// Queues a viewer and calls `decide` later, never synchronously. `waitedMs`: how long it has waited before.
    package func wait(waitedMs: Int64 = 0, _ decide: @escaping (Bool) -> Void) {
        guard !self.isClosed, self.waiting.count < Self.most, waitedMs < Self.patienceMs else {
            self.relay.eventLoop.assumeIsolated().execute { decide(false) }
            return
        }
        self.waiting.append(Waiting(deadlineMs: self.relay.nowMs + Self.patienceMs - waitedMs, decide: decide))
    }

    /// Admits as many as the load allows and refuses the expired. Runs with each sweep of the loop.
    package func sweep(nowMs: Int64) {
        guard !self.waiting.isEmpty else { return }
        var admitted: [Waiting] = []
        if self.relay.pressure.level < .overloaded {
            let count = self.relay.pressure.level == .calm ? self.waiting.count : self.relay.pressure.window
            admitted = Array(self.waiting.prefix(count))
            self.waiting.removeFirst(admitted.count)
        }
        let expired = self.waiting.filter { $0.deadlineMs <= nowMs }
        self.waiting.removeAll { $0.deadlineMs <= nowMs }
        // A decision may queue further viewers.
        for viewer in admitted { viewer.decide(true) }
        for viewer in expired { viewer.decide(false) }
    }

    /// Refuses all that wait because the loop stops.
    package func close() {
        let left = self.waiting
        self.isClosed = true
        self.waiting = []
        for viewer in left { viewer.decide(false) }
    }
}
