/// How long the parts of HTTP's conversation may take, and how many there may be at a time.
struct HTTPLimits: Sendable, Equatable {
    /// From the connection's beginning to the end of its first request's head: against those who send it byte by byte.
    var headMs: Int64 = 10_000
    /// From the end of a request's head to its answer, and from one part of that to the next, as far as both sides' buffers take it.
    var requestMs: Int64 = 60_000
    /// From an answer to the end of the next request's head.
    var idleMs: Int64 = 60_000
    /// Bytes of a head: request line and headers.
    var headBytes = 32 << 10
    var headerFields = 100
    /// Connections at a time.
    var connections = 4_096

    init() {}

    init(_ config: ServerConfig.Limits) {
        self.headMs = config.httpHeadMs
        self.idleMs = config.httpIdleMs
        self.connections = config.httpConnections
    }
}

/// Where an HTTP connection stands and until when it may stand there. `nowMs` is any steady clock.
///
/// ```
/// waiting --head--> busy --answer's end, nothing else asked--> waiting
/// ```
struct HTTPConnectionState: Equatable {
    /// Requests begun whose answers have not ended.
    private(set) var inProgress = 0
    /// A request's head has come and its end has not.
    private(set) var isReading = false
    /// The server goes: no further request is taken.
    private(set) var isQuiescing = false
    private(set) var deadlineMs: Int64
    private let limits: HTTPLimits

    init(limits: HTTPLimits, nowMs: Int64) {
        self.limits = limits
        self.deadlineMs = nowMs + limits.headMs
    }

    mutating func headArrived(nowMs: Int64) {
        // A pipelined request does not prolong the one before it.
        if self.inProgress == 0 { self.deadlineMs = nowMs + self.limits.requestMs }
        self.inProgress += 1
        self.isReading = true
    }

    mutating func requestEnded() { self.isReading = false }

    /// A part of an answer was written, for which those before it had to leave: a long download has its time as long as it moves.
    mutating func answerProgressed(nowMs: Int64) { self.deadlineMs = max(self.deadlineMs, nowMs + self.limits.requestMs) }

    /// True: the connection is to be closed now, since the server goes.
    mutating func answerEnded(nowMs: Int64) -> Bool {
        self.inProgress = max(0, self.inProgress - 1)
        self.deadlineMs = nowMs + (self.inProgress == 0 ? self.limits.idleMs : self.limits.requestMs)
        return self.isQuiescing && self.inProgress == 0
    }

    /// True: nothing is under way, close at once.
    mutating func quiesce() -> Bool {
        self.isQuiescing = true
        return self.inProgress == 0
    }

    func isOverdue(nowMs: Int64) -> Bool { nowMs >= self.deadlineMs }
}
