import Dispatch
import Rooms
import Store
import Synchronization

/// Checks whether the store accepts writes. Callers may ask at any rate, since at most one write a second is made. Any thread.
final class StoreProbe: Sendable {
    /// The reason why the store rejects writes; nil if it accepts them.
    typealias Verdict = String?

    private struct State {
        var verdict: Verdict
        /// Steady clock; nil before the first answer.
        var answeredAt: DispatchTime?
        var isAsking = false
        var waiters: [Int: CheckedContinuation<Verdict, Never>] = [:]
        var nextWaiter = 0
    }

    /// How long an answer is valid.
    private static let freshNs: UInt64 = 1_000_000_000
    private static let patience = DispatchTimeInterval.seconds(2)
    private static let silence = "the store has not answered for 2 s"

    private let state = Mutex(State(verdict: nil))
    private let timeouts = DispatchQueue(label: "earshot.store.probe")

    /// `ask` begins a write and calls back with its outcome, once, from any thread.
    func verdict(_ ask: @Sendable (@escaping @Sendable (Verdict) -> Void) -> Void) async -> Verdict {
        await withCheckedContinuation { continuation in
            let asks = self.state.withLock { state -> Bool in
                if let at = state.answeredAt, DispatchTime.now().uptimeNanoseconds - at.uptimeNanoseconds < Self.freshNs {
                    continuation.resume(returning: state.verdict)
                    return false
                }
                let waiter = state.nextWaiter
                state.nextWaiter += 1
                state.waiters[waiter] = continuation
                self.timeouts.asyncAfter(deadline: .now() + Self.patience) { [weak self] in self?.giveUp(waiter) }
                defer { state.isAsking = true }
                return !state.isAsking
            }
            if asks { ask { self.answered($0) } }
        }
    }

    private func answered(_ verdict: Verdict) {
        let waiters = self.state.withLock { state in
            state.verdict = verdict
            state.answeredAt = .now()
            state.isAsking = false
            defer { state.waiters = [:] }
            return state.waiters.values
        }
        for waiter in waiters { waiter.resume(returning: verdict) }
    }

    private func giveUp(_ waiter: Int) {
        self.state.withLock { $0.waiters.removeValue(forKey: waiter) }?.resume(returning: Self.silence)
    }
}

extension RoomRegistry {
    /// Returns once the registry's queue has run this call. A stuck queue never returns.
    package func turn() {}

    /// The reason why the store cannot be written now; nil if it can. Makes a write if the last answer is older than a second. Waits at most two
    /// seconds.
    package nonisolated func storeProblem() async -> String? {
        await self.probe.verdict { answer in
            Task {
                switch await self.result({ [clock = self.clock] in try $0.store.save(clock.mark()) }) {
                case .success: answer(nil)
                case .failure(let error): answer(RegistryError(of: error).storeProblem)
                }
            }
        }
    }
}
