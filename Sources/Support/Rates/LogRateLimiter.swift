import Synchronization

/// Throttles one kind of log line and counts the lines held back. A flood of bad clients must not flood the log.
package final class LogRateLimiter: Sendable {
    private struct Window {
        var startMs: Int64 = 0
        var lines = 0
        var held = 0
    }

    private let window = Mutex(Window())
    private let lines: Int
    private let perMs: Int64

    /// By default twenty lines a second.
    package init(lines: Int = 20, perMs: Int64 = 1_000) {
        self.lines = lines
        self.perMs = perMs
    }

    /// Returns nil to hold the line back. Otherwise write it; the value is the number of lines held back since the last one.
    package func pass(nowMs: Int64) -> Int? {
        self.window.withLock { window in
            if nowMs - window.startMs >= self.perMs {
                let held = window.held
                window = Window(startMs: nowMs, lines: 1, held: 0)
                return held
            }
            guard window.lines < self.lines else {
                window.held += 1
                return nil
            }
            window.lines += 1
            return 0
        }
    }
}

/// A ``LogRateLimiter`` for each of a few keys, so that a flood of one kind hides no line of another. Any thread.
package final class LogRateLimiters: Sendable {
    private let known = Mutex<[String: LogRateLimiter]>([:])
    private let perMs: Int64
    /// Keys beyond this number share one limiter.
    private static let most = 1_000

    /// One line for each key in this many milliseconds.
    package init(perMs: Int64 = 1_000) { self.perMs = perMs }

    /// As ``LogRateLimiter/pass(nowMs:)``. Keys must come from a small set: no text that peers choose.
    package func pass(_ key: String, nowMs: Int64) -> Int? {
        let limiter = self.known.withLock { known in
            let key = known.count < Self.most || known[key] != nil ? key : ""
            if let limiter = known[key] { return limiter }
            let made = LogRateLimiter(lines: 1, perMs: self.perMs)
            known[key] = made
            return made
        }
        return limiter.pass(nowMs: nowMs)
    }
}
