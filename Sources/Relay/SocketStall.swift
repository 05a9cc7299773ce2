/// How long a viewer's own socket has kept it waiting, since it last had all there was. A plain value of milliseconds.
///
/// A viewer may be behind for two reasons: its socket took no more, or the loop did not come round to it. Only the first is the viewer's.
struct SocketStall: Sendable, Equatable {
    private var sinceMs: Int64?
    private var beforeMs: Int64 = 0

    /// It has not been kept waiting since it had everything.
    var isClear: Bool { self.sinceMs == nil && self.beforeMs == 0 }

    /// The socket takes no more.
    mutating func begin(nowMs: Int64) {
        if self.sinceMs == nil { self.sinceMs = nowMs }
    }

    /// The socket takes more again, which the loop may have noticed `lateMs` late.
    mutating func end(nowMs: Int64, lateMs: Int64) {
        self.beforeMs = self.ms(nowMs: nowMs, lateMs: lateMs)
        self.sinceMs = nil
    }

    /// The viewer has all there is, or goes on elsewhere.
    mutating func clear() { self = SocketStall() }

    /// Judged by a loop that is late by `lateMs`.
    func ms(nowMs: Int64, lateMs: Int64) -> Int64 {
        guard let sinceMs = self.sinceMs else { return self.beforeMs }
        return self.beforeMs + max(0, nowMs - sinceMs - lateMs)
    }
}
