import LibC

/// The store's health, for checks, metrics and the log. A value.
package struct StoreStatus: Sendable, Equatable {
    /// The last commit failed: disk full, file damaged, in use elsewhere.
    package var isFailing = false
    /// The store's message at the last failure.
    package var failure: String?
    /// Free bytes on its disk; nil if unknown.
    package var freeBytes: Int64?
    /// With fewer free bytes no push or room begins; 0 disables the check.
    package var minFreeBytes: Int64 = 0
    /// Facts queued for the store, and their bytes.
    package var waitingFacts = 0
    package var waitingBytes = 0
    /// Facts dropped from the full queue, since the start.
    package var droppedFacts = 0

    package var isShortOfDisk: Bool { self.minFreeBytes > 0 && self.freeBytes.map { $0 < self.minFreeBytes } ?? false }

    /// A description of the problem; nil if there is none.
    package var problem: String? {
        if self.isFailing { return "the store cannot be written: \(self.failure ?? "unknown reason"); \(self.waitingFacts) facts wait" }
        guard self.isShortOfDisk else { return nil }
        return "the disk has \(self.freeBytes ?? 0) bytes left; at least \(self.minFreeBytes) must stay free (data.minFree)"
    }
}

/// The free space that the store's disk must keep. A value.
package struct DiskFloor: Sendable {
    /// Bytes; 0 disables the check.
    package var minFreeBytes: Int64 = 0
    /// Bytes free for an unprivileged user; nil if unknown.
    package var freeBytes: @Sendable () -> Int64?

    package init(minFreeBytes: Int64 = 0, freeBytes: @escaping @Sendable () -> Int64? = { nil }) {
        self.minFreeBytes = minFreeBytes
        self.freeBytes = freeBytes
    }

    /// Measures the file system of this folder, which must exist.
    package init(minFreeBytes: Int64, directory: String) {
        self.init(minFreeBytes: minFreeBytes) {
            var status = statvfs()
            guard statvfs(directory.isEmpty ? "." : directory, &status) == 0 else { return nil }
            let (bytes, overflow) = Int64(clamping: status.f_bavail).multipliedReportingOverflow(by: Int64(clamping: status.f_frsize))
            return overflow ? .max : bytes
        }
    }

    /// The free bytes if too few; nil if they suffice, are unknown or are not checked.
    var shortage: Int64? {
        guard self.minFreeBytes > 0, let free = self.freeBytes(), free < self.minFreeBytes else { return nil }
        return free
    }
}
