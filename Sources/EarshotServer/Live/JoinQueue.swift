import NIOCore
import Relay

/// Queues new viewers until their loop accepts some again, for two seconds at most. Loop-bound; owned by the loop's context.
final class JoinQueue {
    private struct Waiting {
        let deadlineMs: Int64
        let decide: (Bool) -> Void
    }

    private let relay: RelayLoop
    private var waiting: [Waiting] = []
    private var isClosed = false

    /// How long a viewer waits before it is refused.
    static let patienceMs: Int64 = 2_000
    /// Seconds after which a refused viewer should try again.
    static let retrySeconds = 2
    /// Largest queue; further viewers are refused at once.
    private static let most = 1_000

    init(_ relay: RelayLoop) { self.relay = relay }

    /// Whether a viewer may join without waiting.
    var isOpen: Bool { self.waiting.isEmpty && self.relay.pressure.level < .overloaded }

    /// Queues a viewer and calls `decide` later, never synchronously. `waitedMs`: how long it has waited before.
    func wait(waitedMs: Int64 = 0, _ decide: @escaping (Bool) -> Void) {
        guard !self.isClosed, self.waiting.count < Self.most, waitedMs < Self.patienceMs else {
            self.relay.eventLoop.assumeIsolated().execute { decide(false) }
            return
        }
        self.waiting.append(Waiting(deadlineMs: self.relay.nowMs + Self.patienceMs - waitedMs, decide: decide))
    }

    /// Admits as many as the load allows and refuses the expired. Runs with each sweep of the loop.
    func sweep(nowMs: Int64) {
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
    func close() {
        let left = self.waiting
        self.isClosed = true
        self.waiting = []
        for viewer in left { viewer.decide(false) }
    }
}

extension ServerCore {
    /// Message for viewers that are refused or dropped.
    static let overloadMessage = "The server has as many viewers as it can serve in time; come again in a moment."

    /// Holds a viewer over HTTP, for two seconds at most, until the loop accepts viewers. Throws the answer if it does not.
    func waitForPlace(on eventLoop: any EventLoop) async throws(APIError) {
        guard let loop = self.context(of: eventLoop), loop.relay.pressure.level == .overloaded else { return }
        let isAdmitted = await withCheckedContinuation { done in
            eventLoop.execute {
                guard !loop.joins.isOpen else { return done.resume(returning: true) }
                loop.joins.wait { done.resume(returning: $0) }
            }
        }
        guard !isAdmitted else { return }
        self.counters.update {
            $0.connectionsAccepted += 1
            $0.closed[.overloaded, default: 0] += 1
        }
        throw APIError(AdmissionRefusal(reason: .overloaded, message: Self.overloadMessage, retrySeconds: JoinQueue.retrySeconds))
    }
}
