import Apps
import Synchronization

/// For who waits until another server has been told of a change. Resolved once; any thread.
final class FollowUpReceipt: Sendable {
    typealias Outcome = Result<Void, GatheringRefusal>

    private struct State {
        var isExpected = false
        var outcome: Outcome?
        var waiting: CheckedContinuation<Outcome?, Never>?
        var timer: Task<Void, any Error>?
    }

    /// Whether it waits for everything that follows, so that it hears of the first failure or the last success; else for the first step that
    /// others build upon.
    let isForAll: Bool
    private let state = Mutex(State())

    init(isForAll: Bool = false) { self.isForAll = isForAll }

    /// Something is under way whose outcome will come.
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

    /// Nil when nothing is expected, or when it takes longer than this. One may wait.
    func outcome(within limit: Duration) async -> Outcome? {
        await withCheckedContinuation { continuation in
            let known = self.state.withLock { state -> Outcome?? in
                guard state.isExpected, state.outcome == nil, state.waiting == nil else { return .some(state.outcome) }
                state.waiting = continuation
                return nil
            }
            if let known { return continuation.resume(returning: known) }
            // Begun only now: it must not fire before there is somebody to wake.
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
