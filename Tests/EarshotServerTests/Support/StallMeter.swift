import Foundation
import Synchronization

/// Measures how late this machine is with everything: a thread that only sleeps, and notes when it woke late.
///
/// What a test measures by the clock contains the stalls of the machine, which are not the server's. Any thread.
final class StallMeter: Sendable {
    static let shared = StallMeter()

    private struct Stall {
        let begin: ContinuousClock.Instant
        let end: ContinuousClock.Instant
    }

    private struct State {
        var stalls: [Stall] = []
        var lastLook = ContinuousClock.now
    }

    private let state = Mutex(State())
    private static let step = Duration.milliseconds(5)
    /// Less is usual. Added to ``step``.
    private static let slack = Duration.milliseconds(2)
    /// More than ten minutes of nothing but stalls.
    private static let limit = 100_000

    private init() {
        Thread.detachNewThread {
            while true {
                let due = ContinuousClock.now + Self.step
                usleep(5_000)
                let now = ContinuousClock.now
                self.state.withLock { state in
                    if now > due + Self.slack { state.stalls.append(Stall(begin: due, end: now)) }
                    if state.stalls.count > Self.limit { state.stalls.removeFirst(Self.limit / 2) }
                    state.lastLook = now
                }
            }
        }
    }

    /// How much of this time the machine stood still. The meter has to run before: `start` says so.
    func stalled(from begin: ContinuousClock.Instant, to end: ContinuousClock.Instant) async throws -> Duration {
        // The stall that a test has just woken from may not be noted yet.
        while self.state.withLock({ $0.lastLook < end }) { try await Task.sleep(for: Self.step) }
        return self.state.withLock { state in
            state.stalls.reduce(.zero) { sum, stall in
                let (from, to) = (max(stall.begin, begin), min(stall.end, end))
                return from < to ? sum + (to - from) : sum
            }
        }
    }

    /// What has passed since then, without what the machine stood still. Begin with ``start()``.
    func passed(since begin: ContinuousClock.Instant) async -> Duration {
        let now = ContinuousClock.now
        // A test that was cancelled has no time to wait for the last look.
        return now - begin - ((try? await self.stalled(from: begin, to: now)) ?? .zero)
    }

    /// Begins to measure, if nobody has yet.
    static func start() { _ = Self.shared }
}
