import Rooms
import ServerConfiguration
import Support
import Synchronization

/// Limits recordings by quota and by the disk's required free space. Any thread; ``refusal(for:)`` asks the file system.
package final class RecordingBudget: Sendable {
    private let folder: RecordingFolder
    private let limits: LimitHits
    private let quota: Atomic<Int64>
    private let floor: Atomic<Int64>
    private let used = Atomic<Int64>(0)
    /// The quota was exceeded. No recording begins until one is deleted, so that none starts just to fill the last bytes.
    private let isFull = Atomic<Bool>(false)

    /// Extra free disk space that a new recording needs.
    private static let headroomBytes: Int64 = 16 << 20

    init(_ folder: RecordingFolder, _ settings: ServerConfig.Recording, limits: LimitHits = LimitHits()) {
        self.folder = folder
        self.limits = limits
        self.quota = Atomic(Int64(settings.quotaBytes))
        self.floor = Atomic(Int64(settings.minFreeBytes))
    }

    /// Applies a changed quota and floor. Recordings go on.
    func set(_ settings: ServerConfig.Recording) {
        let quota = self.quota.exchange(Int64(settings.quotaBytes), ordering: .relaxed)
        let floor = self.floor.exchange(Int64(settings.minFreeBytes), ordering: .relaxed)
        if quota != self.quotaBytes || floor != self.minFreeBytes { self.isFull.store(false, ordering: .relaxed) }
    }

    private var quotaBytes: Int64 { self.quota.load(ordering: .relaxed) }
    private var minFreeBytes: Int64 { self.floor.load(ordering: .relaxed) }

    /// Size of all recordings, in bytes.
    package var usedBytes: Int64 { self.used.load(ordering: .relaxed) }

    /// Counts bytes added to files; negative when files shrink.
    func add(_ bytes: Int64) { self.used.add(bytes, ordering: .relaxed) }

    /// Counts a deleted recording of this size.
    func free(_ bytes: Int64) {
        self.add(-bytes)
        self.isFull.store(false, ordering: .relaxed)
    }

    /// The reason why no recording may begin; nil when one may. Asks the file system.
    var refusalToBegin: RecordingEnd? {
        if !OpenDescriptors.mayOpen(2) { return .noDescriptors }
        if self.isQuotaUsed { return self.counted(.quotaExceeded) }
        return self.isOverDisk(Self.headroomBytes) ? self.counted(.diskFull) : nil
    }

    private func counted(_ end: RecordingEnd) -> RecordingEnd {
        self.limits.hit(end == .quotaExceeded ? .recordingQuota : .recordingMinFree)
        return end
    }

    /// Whether quota or disk prevent a new recording. Asks the file system.
    var needsRoom: Bool { self.isQuotaUsed || self.isOverDisk(Self.headroomBytes) }

    private var isQuotaUsed: Bool { self.isFull.load(ordering: .relaxed) || self.isOverQuota(0) }

    private func isOverQuota(_ bytes: Int64) -> Bool { self.quotaBytes > 0 && self.usedBytes + bytes > self.quotaBytes }

    private func isOverDisk(_ bytes: Int64) -> Bool {
        // If free space is unknown, the file system itself will refuse the write.
        guard self.minFreeBytes > 0, let free = self.folder.freeBytes else { return false }
        return free - bytes < self.minFreeBytes
    }

    /// The reason why this many more bytes may not be written; nil when they may.
    func refusal(for bytes: Int64) -> RecordingEnd? {
        if self.isOverQuota(bytes) {
            self.isFull.store(true, ordering: .relaxed)
            return self.counted(.quotaExceeded)
        }
        return self.isOverDisk(bytes) ? self.counted(.diskFull) : nil
    }

    /// Explains a refusal, for the log.
    func words(_ refusal: RecordingEnd) -> String {
        switch refusal {
        case .quotaExceeded:
            "\(self.usedBytes) of \(self.quotaBytes) bytes are used (recording.quota); delete recordings, or raise the quota"
        case .diskFull:
            "\(self.folder.path) has \(self.folder.freeBytes ?? 0) bytes left; at least \(self.minFreeBytes) must stay free"
                + " (recording.minFree)"
        case .noDescriptors: "\(OpenDescriptors.advice)"
        default: "\(self.folder.path)"
        }
    }

    /// Whether a temporary copy of this size fits. It may use half of the reserved free space.
    func hasRoomForCopy(of bytes: Int64) -> Bool {
        guard let free = self.folder.freeBytes else { return true }
        return free - bytes >= self.minFreeBytes / 2
    }
}
