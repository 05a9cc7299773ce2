/// When free memory is given back to the system: after a burst, and not more often than once a minute.
///
/// The C library keeps what was freed for the next allocation; after a burst that may be gigabytes. Which memory is free is not known without
/// walking its lists, so signs are looked for: less is charged than before, connections have gone, or the process has grown. The last may be
/// memory in use, so a trim that brought nothing makes the next one for that reason wait longer. A plain value without a clock.
struct TrimSchedule {
    /// What the process has at one moment.
    struct Load: Equatable {
        /// Bytes in RAM, and bytes on the ledger.
        var resident: Int
        var charged: Int
        var connections: Int
    }

    /// Since the last trim: the most there was.
    private var peak = Load(resident: 0, charged: 0, connections: 0)
    /// Bytes in RAM after the last trim.
    private var floor: Int?
    private var lastMs: Int64?
    /// Since when there is a reason for the next one.
    private var reasonMs: Int64?
    private var growthWaitMs = Self.intervalMs

    static let intervalMs: Int64 = 60_000
    /// How long a reason has to last: a burst is over then.
    static let settleMs: Int64 = 5_000
    private static let longestWaitMs: Int64 = 3_600_000
    /// What makes a trim worth its while.
    private static let bytes = 16 << 20
    private static let connections = 100

    /// To be asked every second: bursts may be short.
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

    /// A trim has been made; `load` is what there is now.
    mutating func trimmed(from before: Int, to load: Load, nowMs: Int64) {
        let brought = before - load.resident
        self.growthWaitMs = brought >= Self.bytes ? Self.intervalMs : min(2 * self.growthWaitMs, Self.longestWaitMs)
        self.lastMs = nowMs
        self.reasonMs = nil
        self.floor = load.resident
        self.peak = load
    }
}
