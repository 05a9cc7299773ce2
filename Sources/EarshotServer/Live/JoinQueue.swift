import NIOCore
import Relay

/// Viewers that wait until their loop takes some again: in order, for two seconds at most. Loop-bound; owned by the loop's context.
final class JoinQueue {
    private struct Waiting {
        let deadlineMs: Int64
        let decide: (Bool) -> Void
    }

    private let relay: RelayLoop
    private var waiting: [Waiting] = []
    private var isClosed = false

    /// How long a viewer is put off before it is refused.
    static let patienceMs: Int64 = 2_000
    /// Seconds after which a refused viewer may well come again.
    static let retrySeconds = 2
    /// Beyond that many a viewer is refused at once.
    private static let most = 1_000

    init(_ relay: RelayLoop) { self.relay = relay }

    /// A viewer need not wait.
    var isOpen: Bool { self.waiting.isEmpty && self.relay.pressure.level < .overloaded }

    /// Decides, not at once, whether the viewer is let in. `waitedMs`: how long it has been put off before.
    func wait(waitedMs: Int64 = 0, _ decide: @escaping (Bool) -> Void) {
        guard !self.isClosed, self.waiting.count < Self.most, waitedMs < Self.patienceMs else {
            self.relay.eventLoop.assumeIsolated().execute { decide(false) }
            return
        }
        self.waiting.append(Waiting(deadlineMs: self.relay.nowMs + Self.patienceMs - waitedMs, decide: decide))
    }

    /// With each sweep of the loop.
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
        // What is decided may bring others.
        for viewer in admitted { viewer.decide(true) }
        for viewer in expired { viewer.decide(false) }
    }

    /// The loop stops.
    func close() {
        let left = self.waiting
        self.isClosed = true
        self.waiting = []
        for viewer in left { viewer.decide(false) }
    }
}

extension ServerCore {
    /// What a viewer is told that is not let in, or not kept.
    static let overloadMessage = "The server has as many viewers as it can serve in time; come again in a moment."

    /// For viewers over HTTP: waits, for two seconds at most, until the loop takes viewers. Throws the answer when it does not.
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
