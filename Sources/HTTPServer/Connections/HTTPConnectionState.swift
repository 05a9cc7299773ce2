import HTTPTypes
package import ServerConfiguration

/// Time and size limits of HTTP connections and requests.
package struct HTTPLimits: Sendable, Equatable {
    /// From the connection's start to the end of its first request's head. Stops clients that send it byte by byte.
    var headMs: Int64 = 10_000
    /// From the end of a request's head to the end of its body.
    var bodyMs: Int64 = 10_000
    /// From a request's head to its answer, then between parts of the answer. A part counts once the buffers of both sides
    /// accept it.
    var requestMs: Int64 = 60_000
    /// From an answer to the end of the next request's head.
    package var idleMs: Int64 = 60_000
    /// Bytes of a request's head: request line and headers.
    var headBytes = 32 << 10
    package var headerFields = 100
    /// Concurrent connections in all, and of one address.
    package var connections = 4_096
    package var perAddress = 4_096

    package init() {}

    package init(_ config: ServerConfig) {
        let limits = config.limits
        self.headMs = limits.httpHeadMs
        self.bodyMs = limits.httpBodyMs
        self.idleMs = limits.httpIdleMs
        // A player that waits for a publisher is answered when that wait is over.
        self.requestMs = max(self.requestMs, config.http.firstWaitMs + 10_000)
        self.connections = limits.httpConnections
        self.perAddress = limits.httpPerAddress
    }
}

/// Enforces a deadline and a minimum rate on a request's body. After a grace period a sender of single bytes is cut without waiting for the
/// deadline. A value; milliseconds of any steady clock.
struct BodyPace: Equatable {
    /// Minimum average rate in bytes per second, from ``graceMs`` on.
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
        error.rule = "expected the whole body in time, at \(Self.leastRate) bytes a second or more"
        return error
    }()
}

/// The state and deadline of an HTTP/1.1 connection. `nowMs` is any steady clock.
///
/// ```
/// waiting --head--> busy --answer's end, no other request--> waiting
/// ```
struct HTTPConnectionState: Equatable {
    /// Requests begun whose answers have not ended.
    private(set) var inProgress = 0
    /// The first request's head has arrived.
    private(set) var hasBegun = false
    /// The server is shutting down and accepts no further requests.
    private(set) var isQuiescing = false
    private(set) var deadlineMs: Int64
    /// Pace of the request whose head has arrived but not its end.
    private var body: BodyPace?
    private let limits: HTTPLimits

    /// Whether a request's head has arrived but not its end.
    var isReading: Bool { self.body != nil }

    init(limits: HTTPLimits, nowMs: Int64) {
        self.limits = limits
        self.deadlineMs = nowMs + limits.headMs
    }

    mutating func headArrived(nowMs: Int64) {
        // A pipelined request does not prolong the one before it.
        if self.inProgress == 0 { self.deadlineMs = nowMs + self.limits.requestMs }
        self.inProgress += 1
        self.hasBegun = true
        self.body = BodyPace(limits: self.limits, nowMs: nowMs)
    }

    mutating func bodyArrived(_ bytes: Int) { self.body?.arrived(bytes) }

    mutating func requestEnded() { self.body = nil }

    /// Extends the deadline after a part of an answer was written. Earlier parts had to leave first, so a long download may last while it
    /// moves.
    mutating func answerProgressed(nowMs: Int64) { self.deadlineMs = max(self.deadlineMs, nowMs + self.limits.requestMs) }

    /// Returns true if the connection must close now because the server is shutting down.
    mutating func answerEnded(nowMs: Int64) -> Bool {
        self.inProgress = max(0, self.inProgress - 1)
        self.deadlineMs = nowMs + (self.inProgress == 0 ? self.limits.idleMs : self.limits.requestMs)
        return self.isQuiescing && self.inProgress == 0
    }

    /// Returns true if nothing is under way, so the connection can close at once. The first request of a new connection counts as under way: its
    /// bytes may already wait in the kernel, and closing would reset the connection.
    mutating func quiesce() -> Bool {
        self.isQuiescing = true
        return self.inProgress == 0 && self.hasBegun
    }

    func isOverdue(nowMs: Int64) -> Bool { nowMs >= self.deadlineMs }
    func isBodyOverdue(nowMs: Int64) -> Bool { self.body?.isOverdue(nowMs: nowMs) ?? false }
}
