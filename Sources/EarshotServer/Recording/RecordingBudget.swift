import Rooms
import Synchronization

/// How much may be recorded: the quota, and the room that the disk must keep. Any thread; ``refusal(for:)`` asks the file system.
final class RecordingBudget: Sendable {
    private let folder: RecordingFolder
    private let quotaBytes: Int64
    private let minFreeBytes: Int64
    private let used = Atomic<Int64>(0)
    /// Something did not fit; until a recording is deleted, none is begun to fill the last bytes.
    private let isFull = Atomic<Bool>(false)

    /// Of the disk, for a recording to begin.
    private static let headroomBytes: Int64 = 16 << 20

    init(_ folder: RecordingFolder, _ settings: ServerConfig.Recording) {
        self.folder = folder
        self.quotaBytes = Int64(settings.quotaBytes)
        self.minFreeBytes = Int64(settings.minFreeBytes)
    }

    /// Of all recordings, bytes.
    var usedBytes: Int64 { self.used.load(ordering: .relaxed) }

    /// More bytes (fewer, when negative) are in files.
    func add(_ bytes: Int64) { self.used.add(bytes, ordering: .relaxed) }

    /// A recording of so many bytes is deleted.
    func free(_ bytes: Int64) {
        self.add(-bytes)
        self.isFull.store(false, ordering: .relaxed)
    }

    /// Why no recording may begin; nil when one may. Asks the file system.
    var refusalToBegin: RecordingEnd? {
        if !OpenDescriptors.mayOpen(2) { return .noDescriptors }
        if self.isQuotaUsed { return .quotaExceeded }
        return self.isOverDisk(Self.headroomBytes) ? .diskFull : nil
    }

    /// Whether quota or disk let no recording begin. Asks the file system.
    var needsRoom: Bool { self.isQuotaUsed || self.isOverDisk(Self.headroomBytes) }

    private var isQuotaUsed: Bool { self.isFull.load(ordering: .relaxed) || self.isOverQuota(0) }

    private func isOverQuota(_ bytes: Int64) -> Bool { self.quotaBytes > 0 && self.usedBytes + bytes > self.quotaBytes }

    private func isOverDisk(_ bytes: Int64) -> Bool {
        // A file system that does not tell will refuse by itself.
        guard self.minFreeBytes > 0, let free = self.folder.freeBytes else { return false }
        return free - bytes < self.minFreeBytes
    }

    /// Why so many bytes more may not be written; nil when they may.
    func refusal(for bytes: Int64) -> RecordingEnd? {
        if self.isOverQuota(bytes) {
            self.isFull.store(true, ordering: .relaxed)
            return .quotaExceeded
        }
        return self.isOverDisk(bytes) ? .diskFull : nil
    }

    /// What a refusal is about, for the log.
    func words(_ refusal: RecordingEnd) -> String {
        switch refusal {
        case .quotaExceeded:
            "\(self.usedBytes) of \(self.quotaBytes) bytes are used (recording.quota); delete recordings, or raise it"
        case .diskFull:
            "\(self.folder.path) has \(self.folder.freeBytes ?? 0) bytes left, of which \(self.minFreeBytes) are to stay free (recording.minFree)"
        case .noDescriptors: "\(OpenDescriptors.advice)"
        default: "\(self.folder.path)"
        }
    }

    /// Whether a second copy of so many bytes fits on the disk for a while, beside the room that it must keep.
    func hasRoomForCopy(of bytes: Int64) -> Bool {
        guard let free = self.folder.freeBytes else { return true }
        return free - bytes >= self.minFreeBytes / 2
    }
}
