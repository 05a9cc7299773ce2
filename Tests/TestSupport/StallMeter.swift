import Foundation
import Synchronization

/// Measures how late this machine runs everything: a watcher only sleeps, and records each late wake-up.
///
/// Times measured by a test include stalls that are not the server's. Any thread.
package final class StallMeter: Sendable {
    /// Watches by a thread: stalls of the machine.
    package static let machine = StallMeter { meter in
        Thread.detachNewThread {
            while true {
                let due = StallMeter.nextDue
                usleep(StallMeter.stepMicros)
                meter.woke(due: due)
            }
        }
    }

    /// Watches by a task: stalls of the machine, and of the pool's threads while other tests compute on all of them. For code that runs on
    /// this pool and cannot itself be what blocks it.
    package static let pool = StallMeter { meter in
        Task.detached {
            while true {
                let due = StallMeter.nextDue
                try? await Task.sleep(for: StallMeter.step)
                meter.woke(due: due)
            }
        }
    }

    private struct Stall {
        let begin: ContinuousClock.Instant
        let end: ContinuousClock.Instant
    }

    private struct State {
        var stalls: [Stall] = []
        var lastPoll = ContinuousClock.now
    }

    private let state = Mutex(State())
    private static let stepMicros: UInt32 = 5_000
    private static let step = Duration.microseconds(Int64(stepMicros))
    /// Normal lateness, added to ``step``.
    private static let slack = Duration.milliseconds(2)
    /// Most stalls kept: more than ten minutes of nothing but stalls.
    private static let limit = 100_000

    private init(watch: (StallMeter) -> Void) { watch(self) }

    private static var nextDue: ContinuousClock.Instant { .now + Self.step }

    private func woke(due: ContinuousClock.Instant) {
        let now = ContinuousClock.now
        self.state.withLock { state in
            if now > due + Self.slack { state.stalls.append(Stall(begin: due, end: now)) }
            if state.stalls.count > Self.limit { state.stalls.removeFirst(Self.limit / 2) }
            state.lastPoll = now
        }
    }

    /// Begins to measure, unless it did already. Returns the time now.
    package func start() -> ContinuousClock.Instant { .now }

    /// The stalls between two instants, of which the first came from ``start()`` or later.
    package func stalled(from begin: ContinuousClock.Instant, to end: ContinuousClock.Instant) async throws -> Duration {
        // The stall from which a test has just woken may not be recorded yet.
        while self.state.withLock({ $0.lastPoll < end }) { try await Task.sleep(for: Self.step) }
        return self.state.withLock { state in
            state.stalls.reduce(.zero) { sum, stall in
                let (from, to) = (max(stall.begin, begin), min(stall.end, end))
                return from < to ? sum + (to - from) : sum
            }
        }
    }

    /// Time since `begin`, which came from ``start()`` or later, without stalls.
    package func passed(since begin: ContinuousClock.Instant) async -> Duration {
        let now = ContinuousClock.now
        // A cancelled test cannot wait for the last look, and subtracts nothing.
        return now - begin - ((try? await self.stalled(from: begin, to: now)) ?? .zero)
    }
}
