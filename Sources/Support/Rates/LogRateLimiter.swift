import Synchronization

/// Throttles one kind of log line and counts the lines held back. A flood of bad clients must not flood the log.
package final class LogRateLimiter: Sendable {
    private struct Window {
        var startMs: Int64 = 0
        var lines = 0
        var held = 0
    }

    private let window = Mutex(Window())
    private static let linesPerSecond = 20

    package init() {}

    /// Returns nil to hold the line back. Otherwise write it; the value is the number held back in the second before.
    package func pass(nowMs: Int64) -> Int? {
        self.window.withLock { window in
            if nowMs - window.startMs >= 1_000 {
                let held = window.held
                window = Window(startMs: nowMs, lines: 1, held: 0)
                return held
            }
            guard window.lines < Self.linesPerSecond else {
                window.held += 1
                return nil
            }
            window.lines += 1
            return 0
        }
    }
}
