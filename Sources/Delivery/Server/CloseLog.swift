package import Support
import Synchronization

/// Limits the log's lines about closed connections. Every publisher's end is logged. Other ends get at most twenty lines a second for each reason, and
/// clients that are refused as ``RefusalLines`` says; the rest are counted and reported in a summary. So every end is reported, and a flood of ends
/// does not flood the log. Any thread.
package final class CloseLog: Sendable {
    private struct Window {
        var startMs: Int64
        var lines = 0
        var held = 0
    }

    private let windows = Mutex<[CloseReason: Window]>([:])
    private let refusals = RefusalLines<CloseReason>()
    private let write: @Sendable (CloseReason, _ address: String?, Int) -> Void

    package static let linesPerSecond = 20

    /// `write` logs the number of ends for a reason that had no line of their own, of one address or of many (nil).
    package init(write: @escaping @Sendable (CloseReason, _ address: String?, Int) -> Void) { self.write = write }

    /// Whether this end has a line of its own. `host`: the client's, as ``HostKey`` has it.
    package func pass(_ reason: CloseReason, isPublisher: Bool = false, from host: @autoclosure () -> String, nowMs: Int64) -> Bool {
        guard !isPublisher else { return true }
        if reason.isRefusal { return self.refusals.pass(reason, from: host(), nowMs: nowMs) }
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

    /// Logs the number of lines held back, one line for each reason and refused address; at the end (nil) of refusals that just came, too.
    package func report(nowMs: Int64?) {
        let held = self.windows.withLock { windows in
            let held = windows.filter { $0.value.held > 0 }.map { ($0.key, $0.value.held) }
            for (reason, _) in held { windows[reason]?.held = 0 }
            return held
        }
        for (reason, count) in held.sorted(by: { $0.0.rawValue < $1.0.rawValue }) { self.write(reason, nil, count) }
        for refused in self.refusals.takeHeld(nowMs: nowMs) { self.write(refused.kind, refused.address, refused.count) }
    }
}

extension CloseReason {
    /// Whether it matters who it was: one client that may not do what it tries.
    fileprivate var isRefusal: Bool {
        switch self {
        case .accessDenied, .credentialMissing, .credentialNoTime, .credentialExpired, .credentialWrong, .credentialThrottled, .rateLimited,
            .hookDenied, .forbidden, .roomClosed, .noRoom, .nameTaken, .badName, .tooManyFromAddress:
            true
        default: false
        }
    }
}
