import Rooms
import Synchronization

/// How much may be recorded: the quota, and the room that the disk must keep. Any thread; ``refusal(for:)`` asks the file system.
final class RecordingBudget: Sendable {
    private let folder: RecordingFolder
    private let quotaBytes: Int64
    private let minFreeBytes: Int64
    private let used = Atomic<Int64>(0)

    init(_ folder: RecordingFolder, _ settings: ServerConfig.Recording) {
        self.folder = folder
        self.quotaBytes = Int64(settings.quotaBytes)
        self.minFreeBytes = Int64(settings.minFreeBytes)
    }

    /// Of all recordings, bytes.
    var usedBytes: Int64 { self.used.load(ordering: .relaxed) }

    /// More bytes (fewer, when negative) are in files.
    func add(_ bytes: Int64) { self.used.add(bytes, ordering: .relaxed) }

    /// Why so many bytes more may not be written; nil when they may.
    func refusal(for bytes: Int64) -> RecordingEnd? {
        if self.quotaBytes > 0, self.usedBytes + bytes > self.quotaBytes { return .quotaExceeded }
        // A file system that does not tell will refuse by itself.
        if self.minFreeBytes > 0, let free = self.folder.freeBytes, free - bytes < self.minFreeBytes { return .diskFull }
        return nil
    }

    /// Whether a second copy of so many bytes fits on the disk for a while, beside the room that it must keep.
    func hasRoomForCopy(of bytes: Int64) -> Bool {
        guard let free = self.folder.freeBytes else { return true }
        return free - bytes >= self.minFreeBytes / 2
    }
}
