package import Support
import Synchronization

/// Limits the log's lines about closed connections. Every publisher's end is logged. Other ends get at most twenty lines a second for each reason;
/// the rest are counted and reported in a summary. So every end is reported, and a flood of ends does not flood the log. Any thread.
package final class CloseLog: Sendable {
    private struct Window {
        var startMs: Int64
        var lines = 0
        var held = 0
    }

    private let windows = Mutex<[CloseReason: Window]>([:])
    private let write: @Sendable (CloseReason, Int) -> Void

    package static let linesPerSecond = 20

    /// `write` logs the number of ends for a reason that had no line of their own.
    package init(write: @escaping @Sendable (CloseReason, Int) -> Void) { self.write = write }

    /// Whether this end has a line of its own.
    package func pass(_ reason: CloseReason, isPublisher: Bool = false, nowMs: Int64) -> Bool {
        guard !isPublisher else { return true }
        return self.windows.withLock { windows in
            var window = windows[reason] ?? Window(startMs: nowMs)
            // `report` reports the lines that the last window held back.
            if nowMs - window.startMs >= 1_000 { (window.startMs, window.lines) = (nowMs, 0) }
            defer { windows[reason] = window }
            guard window.lines < Self.linesPerSecond else {
                window.held += 1
                return false
            }
            window.lines += 1
            return true
        }
    }

    /// Logs the number of lines held back, one line for each reason.
    package func report() {
        let held = self.windows.withLock { windows in
            let held = windows.filter { $0.value.held > 0 }.map { ($0.key, $0.value.held) }
            for (reason, _) in held { windows[reason]?.held = 0 }
            return held
        }
        for (reason, count) in held.sorted(by: { $0.0.rawValue < $1.0.rawValue }) {
            self.write(reason, count)
        }
    }
}
