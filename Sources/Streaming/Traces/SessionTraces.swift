package import Logging
package import Support
package import Trace

/// The flight recorders of all sessions: accounts for their memory, and keeps or drops a trace when its session ends. Any thread.
package final class SessionTraces: Sendable {
    package let store: TraceStore
    private let flood = LogRateLimiter()

    package init(_ store: TraceStore = TraceStore()) { self.store = store }

    /// A trace for a session with something to record; nil if the traces' memory is used up.
    package func begin(nowMs: Int64) -> SessionTrace? { SessionTrace(self.store, nowMs: nowMs) }

    /// How a session ended.
    package struct End {
        let id: UInt64
        let reason: CloseReason
        let hadRole: Bool
        let isPublisher: Bool
        /// On the clock of the trace's entries.
        let nowMs: Int64

        package init(id: UInt64, reason: CloseReason, hadRole: Bool, isPublisher: Bool, nowMs: Int64) {
            self.id = id
            self.reason = reason
            self.hadRole = hadRole
            self.isPublisher = isPublisher
            self.nowMs = nowMs
        }
    }

    /// Keeps and logs the trace of a session that ended abnormally. `log` has the session's metadata.
    package func ended(_ trace: SessionTrace, _ end: End, _ log: Logger) {
        guard end.reason.isAbnormal(isPublisher: end.isPublisher) else { return }
        let rings = trace.copy
        self.store.keep(
            EndedTrace(
                id: end.id, reason: end.reason.rawValue, hadRole: end.hadRole, endedMs: WallClock.ms, endedClockMs: end.nowMs,
                rings: rings))
        guard let held = self.flood.pass(nowMs: end.nowMs) else { return }
        let text = CompactTrace.text(rings.entries, nowMs: end.nowMs)
        // The reason is in the text. A field of its own would make log searches count an end twice.
        let metadata: Logger.Metadata = ["trace": "\(text)"]
        log.write("Trace of a closed session", metadata, heldBack: held)
    }
}

extension CloseReason {
    /// Whether an end for this reason means that a device or player misbehaves, so that its last messages are of interest. Ends decided by a user, a
    /// back end or the server's own state are normal: their reason is explanation enough. So is a viewer's broken connection: players that are closed
    /// break it too.
    package func isAbnormal(isPublisher: Bool) -> Bool {
        switch self {
        case .connectionLost: isPublisher
        case .handshakeTimeout, .connectTimeout, .firstMediaTimeout, .unused, .notRTMP, .protocolError, .malformedMedia, .badName,
            .credentialMissing, .credentialNoTime, .credentialExpired, .credentialWrong, .hookDenied, .nameTaken, .flapping, .mediaIdle,
            .tooSlow, .inboundFlood:
            true
        case .clientClosed, .streamEnded, .accessDenied, .credentialThrottled, .rateLimited, .diskFull, .hookUnavailable, .proxyHeader,
            .forbidden, .roomClosed, .noRoom, .registryUnavailable, .dropped, .kicked, .roomEnded, .loop, .takenOver, .overloaded,
            .tooManyConnections, .tooManyFromAddress, .tooManyPublishers, .tooManyViewers, .memoryLimit, .serverShutdown, .unplayable:
            false
        }
    }
}
