package import Support

/// Limits log lines about closed connections with ``CountedLines``, by reason, and by host for refused clients. A publisher's end always gets
/// its own line; every other end at least counts in a summary. Any thread.
package final class CloseLog: Sendable {
    private let lines = CountedLines<CloseReason>()
    private let write: @Sendable (CloseReason, _ host: HostKey?, Int) -> Void

    /// `write` logs the number of suppressed ends of a reason, from one host or from several (nil).
    package init(write: @escaping @Sendable (CloseReason, _ host: HostKey?, Int) -> Void) { self.write = write }

    /// Whether this end gets its own line.
    package func pass(_ reason: CloseReason, isPublisher: Bool = false, from host: @autoclosure () -> HostKey, nowMs: Int64) -> Bool {
        isPublisher || self.lines.pass(reason, from: reason.isRefusal ? host() : nil, nowMs: nowMs)
    }

    /// Logs the numbers of suppressed lines, one line for each reason and refused host; at shutdown (nil) also of windows that have not ended.
    package func report(nowMs: Int64?) {
        for held in self.lines.popHeld(nowMs: nowMs).sorted(by: { $0.kind.rawValue < $1.kind.rawValue }) {
            self.write(held.kind, held.host, held.count)
        }
    }
}

extension CloseReason {
    /// Whether the end is a refusal of one client, so that its address helps to find it.
    fileprivate var isRefusal: Bool {
        switch self {
        case .accessDenied, .credentialMissing, .credentialNoTime, .credentialExpired, .credentialWrong, .credentialThrottled, .rateLimited,
            .hookDenied, .forbidden, .roomClosed, .noRoom, .nameTaken, .badName, .tooManyFromAddress:
            true
        default: false
        }
    }
}
