package import Support

/// Limits log lines about closed connections with ``CountedLines``, by reason, and by address for refused clients. A publisher's end always gets
/// its own line; every other end at least counts in a summary. Any thread.
package final class CloseLog: Sendable {
    private let lines = CountedLines<CloseReason>()
    private let write: @Sendable (CloseReason, _ address: String?, Int) -> Void

    /// `write` logs the number of suppressed ends of a reason, from one address or from several (nil).
    package init(write: @escaping @Sendable (CloseReason, _ address: String?, Int) -> Void) { self.write = write }

    /// Whether this end gets its own line. `host`: the client's, as ``HostKey`` writes it.
    package func pass(_ reason: CloseReason, isPublisher: Bool = false, from host: @autoclosure () -> String, nowMs: Int64) -> Bool {
        isPublisher || self.lines.pass(reason, from: reason.isRefusal ? host() : nil, nowMs: nowMs)
    }

    /// Logs the numbers of suppressed lines, one line for each reason and refused address; at shutdown (nil) also of windows that have not ended.
    package func report(nowMs: Int64?) {
        for held in self.lines.takeHeld(nowMs: nowMs).sorted(by: { $0.kind.rawValue < $1.kind.rawValue }) {
            self.write(held.kind, held.address, held.count)
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
