import Support
package import Trace

/// A session's trace as the API shows it. A plain value.
package struct TraceReport: Sendable {
    /// One entry with its time of day.
    package struct Line: Sendable {
        package let entry: TraceEntry
        /// Milliseconds since 1970.
        package let timeMs: Int64
        /// Milliseconds before the report.
        package let agoMs: Int64
    }

    package let id: UInt64
    /// Why the session ended; nil while it goes on.
    package let reason: String?
    /// Milliseconds since 1970; nil while the session goes on.
    package let endedMs: Int64?
    /// Oldest first.
    package let lines: [Line]

    /// Reports a running session. `nowMs` uses the clock of the entries.
    init(_ trace: SessionTrace?, of id: UInt64, nowMs: Int64) {
        self.id = id
        self.reason = nil
        self.endedMs = nil
        let wallMs = WallClock.ms
        self.lines = (trace?.entries ?? []).map { entry in
            let agoMs = max(0, nowMs - entry.atMs)
            return Line(entry: entry, timeMs: wallMs - agoMs, agoMs: agoMs)
        }
    }

    /// Reports an ended session.
    init(_ ended: EndedTrace) {
        self.id = ended.id
        self.reason = ended.reason
        self.endedMs = ended.endedMs
        let wallMs = WallClock.ms
        self.lines = ended.rings.entries.map { entry in
            let timeMs = ended.endedMs - max(0, ended.endedClockMs - entry.atMs)
            return Line(entry: entry, timeMs: timeMs, agoMs: max(0, wallMs - timeMs))
        }
    }
}

extension SessionTraces {
    /// The trace of a session that ended abnormally within the last minutes.
    package func ended(_ id: UInt64) -> TraceReport? {
        self.store.ended(id, nowMs: WallClock.ms).map { TraceReport($0) }
    }
}
