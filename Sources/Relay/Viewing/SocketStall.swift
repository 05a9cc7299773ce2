/// How long a viewer's own socket has kept it waiting, since it last had everything. A plain value of milliseconds.
///
/// A viewer may be behind for two reasons: its socket was full, or the loop did not reach it in time. Only the first is the viewer's fault.
struct SocketStall: Sendable, Equatable {
    private var sinceMs: Int64?
    private var beforeMs: Int64 = 0

    /// No stall since the viewer last had everything.
    var isClear: Bool { self.sinceMs == nil && self.beforeMs == 0 }

    /// The socket is full.
    mutating func begin(nowMs: Int64) {
        if self.sinceMs == nil { self.sinceMs = nowMs }
    }

    /// The socket has room again, which the loop may have noticed `lateMs` late.
    mutating func end(nowMs: Int64, lateMs: Int64) {
        self.beforeMs = self.ms(nowMs: nowMs, lateMs: lateMs)
        self.sinceMs = nil
    }

    /// The viewer has everything, or resumes elsewhere.
    mutating func clear() { self = SocketStall() }

    /// The stall so far, as judged by a loop that is `lateMs` late.
    func ms(nowMs: Int64, lateMs: Int64) -> Int64 {
        guard let sinceMs = self.sinceMs else { return self.beforeMs }
        return self.beforeMs + max(0, nowMs - sinceMs - lateMs)
    }
}
