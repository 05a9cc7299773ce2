/// When a viewer counts as slow. Milliseconds.
package struct RelayPolicy: Sendable {
    package var skipBehindMs: Int64 = 1_000
    package var maxBehindMs: Int64 = 5_000
    /// Messages are gathered for so long before they are sent; 0: at once.
    package var coalesceMs: Int64 = 0
    /// The same for the streams of single apps.
    package var coalesceByAppMs: [String: Int64] = [:]
    package var grace = GracePeriods()
    package var ring = FanoutRing.Bounds()
    package init() {}

    /// For a stream "app/name".
    func coalesceMs(_ path: String) -> Int64 {
        guard !self.coalesceByAppMs.isEmpty, let slash = path.firstIndex(of: "/") else { return self.coalesceMs }
        return self.coalesceByAppMs[String(path[..<slash])] ?? self.coalesceMs
    }
}
