/// The state and deadlines of an HTTP/2 connection. `nowMs` is any steady clock.
///
/// ```
/// serving --quiesce--> announced --confirmed, or overdue--> leaving --last stream closed, or overdue--> closing --overdue--> cut
/// serving --no stream for too long; quiesce between streams; broken rules----------------------------^
/// ```
struct HTTP2ConnectionState: Equatable {
    enum Phase: Equatable {
        case serving
        /// GOAWAY without a last stream was sent (RFC 9113 §6.8).
        case announced(untilMs: Int64)
        /// GOAWAY with the last stream to be served was sent.
        case leaving
        case closing(untilMs: Int64)
        case cut
    }

    enum Action: Equatable {
        case nothing
        /// A GOAWAY that refuses nothing yet. The answer to the PING after it confirms that the client has read it.
        case announce
        /// GOAWAY with this last stream.
        case goAway(last: Int)
        /// The same, then close.
        case goAwayAndClose(last: Int)
        case close
        /// Close without waiting for the client.
        case cut
    }

    private(set) var phase = Phase.serving
    /// Streams open now.
    private(set) var streams = 0
    /// Highest stream ID opened.
    private var last = 0
    /// Deadline of a connection without streams.
    private var idleUntilMs: Int64
    private var leaveUntilMs = Int64.max
    private let limits: HTTPLimits

    init(limits: HTTPLimits, openedMs: Int64) {
        self.limits = limits
        self.idleUntilMs = openedMs + limits.headMs
    }

    mutating func streamOpened(_ id: Int) {
        self.streams += 1
        self.last = max(self.last, id)
    }

    mutating func streamClosed(nowMs: Int64) -> Action {
        self.streams = max(0, self.streams - 1)
        guard self.streams == 0 else { return .nothing }
        self.idleUntilMs = nowMs + self.limits.idleMs
        return self.phase == .leaving ? self.end(.close, nowMs: nowMs) : .nothing
    }

    /// The server is shutting down. The first request of a new connection may be on its way.
    mutating func quiesce(nowMs: Int64) -> Action {
        guard self.phase == .serving else { return .nothing }
        guard self.streams > 0 || self.last == 0 else { return self.end(.goAwayAndClose(last: self.last), nowMs: nowMs) }
        self.phase = .announced(untilMs: nowMs + HTTP2Limits.announceMs)
        self.leaveUntilMs = nowMs + HTTP2Limits.leaveMs
        return .announce
    }

    /// The client has confirmed the announcement, or has had time to.
    mutating func announcementConfirmed(nowMs: Int64) -> Action {
        guard case .announced = self.phase else { return .nothing }
        guard self.streams > 0 else { return self.end(.goAwayAndClose(last: self.last), nowMs: nowMs) }
        self.phase = .leaving
        return .goAway(last: self.last)
    }

    /// The client broke the protocol and was sent the error, or has gone.
    mutating func broken(nowMs: Int64) -> Action {
        switch self.phase {
        case .closing, .cut: return .nothing
        case .serving, .announced, .leaving:
            self.phase = .closing(untilMs: nowMs + HTTP2Limits.brokenMs)
            return .close
        }
    }

    mutating func sweep(nowMs: Int64) -> Action {
        switch self.phase {
        case .serving where self.streams == 0 && nowMs >= self.idleUntilMs:
            return self.end(.goAwayAndClose(last: self.last), nowMs: nowMs)
        case .announced(let untilMs) where nowMs >= untilMs:
            return self.announcementConfirmed(nowMs: nowMs)
        case .leaving where nowMs >= self.leaveUntilMs:
            self.phase = .cut
            return .cut
        case .closing(let untilMs) where nowMs >= min(untilMs, self.leaveUntilMs):
            self.phase = .cut
            return .cut
        case .serving, .announced, .leaving, .closing, .cut:
            return .nothing
        }
    }

    private mutating func end(_ action: Action, nowMs: Int64) -> Action {
        self.phase = .closing(untilMs: nowMs + HTTP2Limits.drainMs)
        return action
    }
}
