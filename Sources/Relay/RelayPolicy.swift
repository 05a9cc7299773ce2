package import Support

/// Limits for slow viewers, overloaded loops and a stream's memory. Times are in milliseconds.
package struct RelayPolicy: Sendable {
    package var skipBehindMs: Int64 = 1_000
    package var maxBehindMs: Int64 = 5_000
    /// Lag from which a loop admits no new viewers.
    package var overloadMs: Int64 = 500
    /// Time between two looks of a busy loop at its sockets, at least; 0: it looks as often as it is woken. Microseconds.
    package var gatherMicros: Int64 = 0
    /// How long messages are gathered before they are sent; 0: not at all.
    package var coalesceMs: Int64 = 0
    /// ``coalesceMs`` of single apps.
    package var coalesceByAppMs: NameTable<Int64> = [:]
    /// Age limit in audio-only streams of these apps: viewers further behind skip to new audio. Other viewers are sent everything.
    package var maxQueueByAppMs: NameTable<Int64> = [:]
    package var grace = GracePeriods()
    package var ring = FanoutRing.Bounds()
    /// The ledger that slabs are charged to; nil: none.
    package var ledger: MemoryLedger?
    package init() {}

    /// The interval for a stream "app/name".
    func coalesceMs(_ path: String) -> Int64 { Self.value(self.coalesceByAppMs, path) ?? self.coalesceMs }

    /// The age limit for a stream "app/name". Nil: audio is not skipped.
    func maxQueueMs(_ path: String) -> Int64? { Self.value(self.maxQueueByAppMs, path) }

    private static func value(_ byApp: NameTable<Int64>, _ path: String) -> Int64? {
        guard !byApp.isEmpty, let slash = path.firstIndex(of: "/") else { return nil }
        return byApp[String(path[..<slash])]
    }
}
