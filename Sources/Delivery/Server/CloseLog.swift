package import Support

/// Limits the log's lines about closed connections as ``CountedLines`` does; of clients that are refused the address matters. Every publisher's end is
/// logged, and every end is reported: a flood of ends does not flood the log. Any thread.
package final class CloseLog: Sendable {
    private let lines = CountedLines<CloseReason>()
    private let write: @Sendable (CloseReason, _ address: String?, Int) -> Void

    /// `write` logs the number of ends for a reason that had no line of their own, of one address or of many (nil).
    package init(write: @escaping @Sendable (CloseReason, _ address: String?, Int) -> Void) { self.write = write }

    /// Whether this end has a line of its own. `host`: the client's, as ``HostKey`` has it.
    package func pass(_ reason: CloseReason, isPublisher: Bool = false, from host: @autoclosure () -> String, nowMs: Int64) -> Bool {
        isPublisher || self.lines.pass(reason, from: reason.isRefusal ? host() : nil, nowMs: nowMs)
    }

    /// Logs the number of lines held back, one line for each reason and refused address; at the server's end (nil) of those that just came, too.
    package func report(nowMs: Int64?) {
        for held in self.lines.takeHeld(nowMs: nowMs).sorted(by: { $0.kind.rawValue < $1.kind.rawValue }) {
            self.write(held.kind, held.address, held.count)
        }
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
