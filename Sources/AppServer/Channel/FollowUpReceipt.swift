import Apps
import Synchronization

/// Lets a caller wait for another server's answer to a change. Resolved once; any thread.
final class FollowUpReceipt: Sendable {
    typealias Outcome = Result<Void, GatheringRefusal>

    private struct State {
        var isExpected = false
        var outcome: Outcome?
        var waiting: CheckedContinuation<Outcome?, Never>?
        var timer: Task<Void, any Error>?
    }

    /// Whether to wait for all calls that follow a change, until the first failure or the last success. Otherwise the receipt waits only for the
    /// first call that others depend on.
    let isForAll: Bool
    private let state = Mutex(State())

    init(isForAll: Bool = false) { self.isForAll = isForAll }

    /// Notes that a call is under way whose outcome will arrive.
    func expect() { self.state.withLock { $0.isExpected = true } }

    var isExpected: Bool { self.state.withLock { $0.isExpected } }

    func resolve(_ outcome: Outcome) {
        let waiting = self.state.withLock { state -> CheckedContinuation<Outcome?, Never>? in
            guard state.outcome == nil else { return nil }
            (state.isExpected, state.outcome) = (true, outcome)
            state.timer?.cancel()
            defer { state.waiting = nil }
            return state.waiting
        }
        waiting?.resume(returning: outcome)
    }

    /// Nil when nothing is expected, or after this time. Only one caller may wait.
    func outcome(within limit: Duration) async -> Outcome? {
        await withCheckedContinuation { continuation in
            let known = self.state.withLock { state -> Outcome?? in
                guard state.isExpected, state.outcome == nil, state.waiting == nil else { return .some(state.outcome) }
                state.waiting = continuation
                return nil
            }
            if let known { return continuation.resume(returning: known) }
            // Started only now, because it must not fire before a caller waits.
            let timer = Task {
                try await Task.sleep(for: limit)
                self.giveUp()
            }
            self.state.withLock { $0.timer = timer }
        }
    }

    private func giveUp() {
        let waiting = self.state.withLock { state in
            defer { state.waiting = nil }
            return state.waiting
        }
        waiting?.resume(returning: nil)
    }
}
