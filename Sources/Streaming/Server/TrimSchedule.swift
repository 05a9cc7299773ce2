/// Decides when to return free memory to the system: after a burst, at most once a minute.
///
/// The C library keeps freed memory for later allocations; after a burst that may be gigabytes. The amount of free memory is unknown without walking
/// its lists, so this looks for signs: less is charged than before, connections have closed, or the process has grown. Growth may be memory in use,
/// so a trim that freed little doubles the wait before growth justifies another trim. A plain value without a clock.
struct TrimSchedule {
    /// The process's memory and connections at one moment.
    struct Load: Equatable {
        /// Bytes in RAM, and bytes charged to the ledger.
        var resident: Int
        var charged: Int
        var connections: Int
    }

    /// The highest values since the last trim.
    private var peak = Load(resident: 0, charged: 0, connections: 0)
    /// The least bytes in RAM since the last trim.
    private var floor: Int?
    private var lastMs: Int64?
    /// Start of the present reason to trim.
    private var reasonMs: Int64?
    private var growthWaitMs = Self.intervalMs

    static let intervalMs: Int64 = 60_000
    /// How long a reason must last, so that the burst is over.
    static let settleMs: Int64 = 5_000
    private static let longestWaitMs: Int64 = 3_600_000
    /// The least change that justifies a trim.
    private static let bytes = 16 << 20
    private static let connections = 100

    /// Records the number of connections at one moment, for the peak.
    mutating func sawConnections(_ count: Int) { self.peak.connections = max(self.peak.connections, count) }

    /// Whether a trim is due. Call every second: the charged bytes may rise and fall quickly.
    mutating func isDue(_ load: Load, nowMs: Int64) -> Bool {
        let floor = self.floor ?? load.resident
        self.floor = min(floor, load.resident)
        self.peak.charged = max(self.peak.charged, load.charged)
        self.peak.connections = max(self.peak.connections, load.connections)
        let sinceMs = self.lastMs.map { nowMs - $0 } ?? .max
        let hasFallen =
            self.peak.charged - load.charged >= Self.bytes || self.peak.connections - load.connections >= Self.connections
        guard hasFallen || load.resident - floor >= 2 * Self.bytes && sinceMs >= self.growthWaitMs else {
            self.reasonMs = nil
            return false
        }
        let reasonMs = self.reasonMs ?? nowMs
        self.reasonMs = reasonMs
        return nowMs - reasonMs >= Self.settleMs && sinceMs >= Self.intervalMs
    }

    /// Records a trim; `load` is measured after it.
    mutating func trimmed(from before: Int, to load: Load, nowMs: Int64) {
        let brought = before - load.resident
        self.growthWaitMs = brought >= Self.bytes ? Self.intervalMs : min(2 * self.growthWaitMs, Self.longestWaitMs)
        self.lastMs = nowMs
        self.reasonMs = nil
        self.floor = load.resident
        self.peak = load
    }
}
