import Foundation
import Synchronization

/// Performs timed steps in order on its own thread. Tests' tasks share a few threads with everything else in the process; a task that waits
/// there for its turn sends late and in bursts.
///
/// Records its own lateness, so that a failure shows whose fault it is. A step more than `patience` late postpones all later ones: a device
/// that paused does not catch up in a burst either.
///
/// Any thread.
package final class PacedSender: Sendable {
    package struct Step {
        /// Time after the start.
        package let due: Duration
        /// Gets the instant at which the step was due, postponements included.
        package let run: (_ due: ContinuousClock.Instant) -> Void

        package init(due: Duration, run: @escaping (_ due: ContinuousClock.Instant) -> Void) {
            self.due = due
            self.run = run
        }
    }

    /// How well the sender kept time.
    package struct Lateness: Sendable, CustomStringConvertible {
        package var steps = 0
        package var latest = Duration.zero
        /// Number of times that later steps were postponed, and by how much in all.
        package var pauses = 0
        package var postponed = Duration.zero

        package var latestMs: Double { self.latest / .milliseconds(1) }

        package var description: String {
            "the sender took \(self.steps) steps, the latest \(Int(self.latestMs)) ms late; \(self.pauses) pauses of "
                + "\(Int(self.postponed / .milliseconds(1))) ms in all"
        }
    }

    private struct State {
        var lateness = Lateness()
        var isStopping = false
        var outcome: Result<Lateness, any Error>?
        var waiters: [CheckedContinuation<Lateness, any Error>] = []
    }

    private static let patience = Duration.milliseconds(150)
    private let state = Mutex(State())

    /// Starts at once. `make` runs on the thread and returns the function that yields the steps in order; its nil ends the sender.
    package init(_ make: @escaping @Sendable () throws -> () throws -> Step?) {
        Thread.detachNewThread {
            self.finish(Result { try self.run(try make()) })
        }
    }

    /// No step begins after this.
    package func stop() { self.state.withLock { $0.isStopping = true } }

    /// Waits for the last step.
    @discardableResult
    package func ended() async throws -> Lateness {
        try await withCheckedThrowingContinuation { continuation in
            let outcome = self.state.withLock { state in
                if state.outcome == nil { state.waiters.append(continuation) }
                return state.outcome
            }
            if let outcome { continuation.resume(with: outcome) }
        }
    }

    private func run(_ next: () throws -> Step?) throws -> Lateness {
        let start = ContinuousClock.now
        while let step = try next() {
            let due = start + step.due + self.state.withLock { $0.lateness.postponed }
            guard self.sleep(until: due) else { break }
            let late = max(.zero, ContinuousClock.now - due)
            let postponed = late > Self.patience ? late : .zero
            self.state.withLock { state in
                state.lateness.steps += 1
                state.lateness.latest = max(state.lateness.latest, late)
                state.lateness.postponed += postponed
                if postponed > .zero { state.lateness.pauses += 1 }
            }
            step.run(due + postponed)
        }
        return self.state.withLock { $0.lateness }
    }

    /// Returns false when stopped.
    private func sleep(until due: ContinuousClock.Instant) -> Bool {
        while !self.state.withLock({ $0.isStopping }) {
            let left = (due - .now) / .seconds(1)
            guard left > 0 else { return true }
            Thread.sleep(forTimeInterval: min(left, 0.1))
        }
        return false
    }

    private func finish(_ outcome: Result<Lateness, any Error>) {
        let waiters = self.state.withLock { state in
            state.outcome = outcome
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.resume(with: outcome) }
    }
}
