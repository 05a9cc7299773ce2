import Foundation
import Synchronization

/// Measures how late this machine runs everything: a thread only sleeps, and records each late wake-up.
///
/// Times measured by a test include stalls of the machine, which are not the server's. Any thread.
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
    /// Normal lateness, added to ``step``.
    private static let slack = Duration.milliseconds(2)
    /// Most stalls kept: more than ten minutes of nothing but stalls.
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

    /// The machine's stalls between two instants. Requires ``start()`` before the first.
    func stalled(from begin: ContinuousClock.Instant, to end: ContinuousClock.Instant) async throws -> Duration {
        // The stall from which a test has just woken may not be recorded yet.
        while self.state.withLock({ $0.lastLook < end }) { try await Task.sleep(for: Self.step) }
        return self.state.withLock { state in
            state.stalls.reduce(.zero) { sum, stall in
                let (from, to) = (max(stall.begin, begin), min(stall.end, end))
                return from < to ? sum + (to - from) : sum
            }
        }
    }

    /// Time since `begin`, without stalls of the machine. Requires ``start()`` before it.
    func passed(since begin: ContinuousClock.Instant) async -> Duration {
        let now = ContinuousClock.now
        // A cancelled test cannot wait for the last look, and subtracts nothing.
        return now - begin - ((try? await self.stalled(from: begin, to: now)) ?? .zero)
    }

    /// Starts measuring, unless it runs already.
    static func start() { _ = Self.shared }
}
