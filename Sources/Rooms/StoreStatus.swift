#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// How the store is: for health checks, metrics and the log. A value.
package struct StoreStatus: Sendable, Equatable {
    /// The last commit failed: disk full, file damaged, in use elsewhere.
    package var isFailing = false
    /// What the store said then.
    package var failure: String?
    /// Bytes left on its disk; nil where that is not known.
    package var freeBytes: Int64?
    /// With less nothing new begins; 0: that is not looked at.
    package var minFreeBytes: Int64 = 0
    /// Facts that wait to be written, and their bytes.
    package var waitingFacts = 0
    package var waitingBytes = 0
    /// Facts that found no place to wait, since the start.
    package var droppedFacts = 0

    package init() {}

    package var isShortOfDisk: Bool { self.minFreeBytes > 0 && self.freeBytes.map { $0 < self.minFreeBytes } ?? false }

    /// What is wrong, for people; nil: nothing.
    package var problem: String? {
        if self.isFailing { return "the store cannot be written: \(self.failure ?? "no reason"); \(self.waitingFacts) facts wait" }
        guard self.isShortOfDisk else { return nil }
        return "the disk has \(self.freeBytes ?? 0) bytes left, of which \(self.minFreeBytes) are to stay free (data.minFree)"
    }
}

/// What may be written to the store's disk. A value.
package struct DiskFloor: Sendable {
    /// Bytes; 0: whatever is free.
    package var minFreeBytes: Int64 = 0
    /// Bytes left for a user without privileges; nil when that is not known.
    package var freeBytes: @Sendable () -> Int64?

    package init(minFreeBytes: Int64 = 0, freeBytes: @escaping @Sendable () -> Int64? = { nil }) {
        self.minFreeBytes = minFreeBytes
        self.freeBytes = freeBytes
    }

    /// Of the file system on which this folder, which exists, lies.
    package init(minFreeBytes: Int64, directory: String) {
        self.init(minFreeBytes: minFreeBytes) {
            var status = statvfs()
            guard statvfs(directory.isEmpty ? "." : directory, &status) == 0 else { return nil }
            let (bytes, overflow) = Int64(clamping: status.f_bavail).multipliedReportingOverflow(by: Int64(clamping: status.f_frsize))
            return overflow ? .max : bytes
        }
    }

    /// Free bytes when they are too few; nil: there is room, or nobody asks for it.
    var shortage: Int64? {
        guard self.minFreeBytes > 0, let free = self.freeBytes(), free < self.minFreeBytes else { return nil }
        return free
    }
}
