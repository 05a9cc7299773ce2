/// When a viewer counts as slow, and a loop as overloaded (milliseconds), and what a stream may hold.
package struct RelayPolicy: Sendable {
    package var skipBehindMs: Int64 = 1_000
    package var maxBehindMs: Int64 = 5_000
    /// A loop's lag from which on it takes no new viewers.
    package var overloadMs: Int64 = 500
    /// Messages are gathered for so long before they are sent; 0: at once.
    package var coalesceMs: Int64 = 0
    /// The same for the streams of single apps.
    package var coalesceByAppMs: [String: Int64] = [:]
    /// Viewers of audio without video in these apps go on with what is new when they are further behind; others are sent everything.
    package var maxQueueByAppMs: [String: Int64] = [:]
    package var grace = GracePeriods()
    package var ring = FanoutRing.Bounds()
    /// Where slabs are charged; nil: nowhere.
    package var ledger: MemoryLedger?
    package init() {}

    /// For a stream "app/name".
    func coalesceMs(_ path: String) -> Int64 { Self.value(self.coalesceByAppMs, path) ?? self.coalesceMs }

    /// Nil: audio is not left out.
    func maxQueueMs(_ path: String) -> Int64? { Self.value(self.maxQueueByAppMs, path) }

    private static func value(_ byApp: [String: Int64], _ path: String) -> Int64? {
        guard !byApp.isEmpty, let slash = path.firstIndex(of: "/") else { return nil }
        return byApp[String(path[..<slash])]
    }
}
