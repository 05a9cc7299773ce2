import HTTPTypes

/// How long the parts of HTTP's conversation may take, and how many there may be at a time.
struct HTTPLimits: Sendable, Equatable {
    /// From the connection's beginning to the end of its first request's head: against those who send it byte by byte.
    var headMs: Int64 = 10_000
    /// From the end of a request's head to the end of its body.
    var bodyMs: Int64 = 10_000
    /// From the end of a request's head to its answer, and from one part of that to the next, as far as both sides' buffers take it.
    var requestMs: Int64 = 60_000
    /// From an answer to the end of the next request's head.
    var idleMs: Int64 = 60_000
    /// Bytes of a head: request line and headers.
    var headBytes = 32 << 10
    var headerFields = 100
    /// Connections at a time, and those of one address.
    var connections = 4_096
    var perAddress = 4_096

    init() {}

    init(_ config: ServerConfig.Limits) {
        self.headMs = config.httpHeadMs
        self.bodyMs = config.httpBodyMs
        self.idleMs = config.httpIdleMs
        self.connections = config.httpConnections
        self.perAddress = config.httpPerAddress
    }
}

/// How fast a request's body has to come: in all within its time, and after a moment at a least rate, so that a sender of single bytes is not
/// waited for to the end. A value; milliseconds of any steady clock.
struct BodyPace: Equatable {
    /// Bytes a second, on average, from ``graceMs`` on.
    static let leastRate: Int64 = 256
    static let graceMs: Int64 = 3_000

    private let beginMs: Int64
    private let limitMs: Int64
    private var bytes: Int64 = 0

    init(limits: HTTPLimits, nowMs: Int64) {
        self.beginMs = nowMs
        self.limitMs = limits.bodyMs
    }

    mutating func arrived(_ bytes: Int) { self.bytes += Int64(bytes) }

    func isOverdue(nowMs: Int64) -> Bool {
        let ageMs = nowMs - self.beginMs
        return ageMs >= self.limitMs || (ageMs > Self.graceMs && self.bytes * 1_000 < (ageMs - Self.graceMs) * Self.leastRate)
    }

    static let error: APIError = {
        var error = APIError(.requestTimeout, .invalid, "The request's body came too slowly (limits.httpBody).")
        error.rule = "the whole body in time, \(Self.leastRate) bytes a second or more"
        return error
    }()
}

/// Where an HTTP connection stands and until when it may stand there. `nowMs` is any steady clock.
///
/// ```
/// waiting --head--> busy --answer's end, nothing else asked--> waiting
/// ```
struct HTTPConnectionState: Equatable {
    /// Requests begun whose answers have not ended.
    private(set) var inProgress = 0
    /// The server goes: no further request is taken.
    private(set) var isQuiescing = false
    private(set) var deadlineMs: Int64
    /// Of the request whose head has come and whose end has not.
    private var body: BodyPace?
    private let limits: HTTPLimits

    /// A request's head has come and its end has not.
    var isReading: Bool { self.body != nil }

    init(limits: HTTPLimits, nowMs: Int64) {
        self.limits = limits
        self.deadlineMs = nowMs + limits.headMs
    }

    mutating func headArrived(nowMs: Int64) {
        // A pipelined request does not prolong the one before it.
        if self.inProgress == 0 { self.deadlineMs = nowMs + self.limits.requestMs }
        self.inProgress += 1
        self.body = BodyPace(limits: self.limits, nowMs: nowMs)
    }

    mutating func bodyArrived(_ bytes: Int) { self.body?.arrived(bytes) }

    mutating func requestEnded() { self.body = nil }

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
    func isBodyOverdue(nowMs: Int64) -> Bool { self.body?.isOverdue(nowMs: nowMs) ?? false }
}
