import Logging
package import Rooms
import Streaming
import Synchronization

/// Deletes recordings: by call, and those that are older than the settings allow. Any thread; blocks no event loop.
package final class RecordingRetention: Sendable {
    /// 0: recordings are kept for ever.
    private let kept: @Sendable () -> Int64
    private let folder: RecordingFolder
    private let budget: RecordingBudget
    private let rooms: any RecordingIndex
    private let log: Logger
    /// Whether the recording with this id is being finished.
    private let isBusy: @Sendable (String) -> Bool
    private let share = Mutex(RetentionShare())

    /// Most recordings deleted by one check.
    private static let batch = 100
    /// Longest interval between checks.
    private static let longestPauseMs: Int64 = 20_000

    init(
        retentionMs: @escaping @Sendable () -> Int64, folder: RecordingFolder, budget: RecordingBudget, rooms: any RecordingIndex,
        log: Logger,
        isBusy: @escaping @Sendable (String) -> Bool
    ) {
        self.kept = retentionMs
        self.folder = folder
        self.budget = budget
        self.rooms = rooms
        self.log = log
        self.isBusy = isBusy
    }

    private var retentionMs: Int64 { self.kept() }

    /// Milliseconds between checks for old recordings.
    var pauseMs: Int64 { min(Self.longestPauseMs, max(1_000, self.retentionMs / 2)) }

    /// Removes the file, then its index row. Nil: there is no such recording, or it is not finished. Throws the disk's errors.
    package func delete(_ recording: Recording) async throws -> Recording? {
        guard recording.state == .finished || recording.state == .failed, !self.isBusy(recording.id) else { return nil }
        let folder = self.folder
        if let failure = await DiskWork.run({ () -> RecordingFolder.Failure? in
            do throws(RecordingFolder.Failure) {
                try folder.remove(recording.file)
                return nil
            } catch {
                return error
            }
        }) {
            throw failure
        }
        let old = try await self.rooms.recordingDeleted(recording.id)
        if let old { self.budget.free(old.bytes) }
        return old
    }

    /// Deletes recordings older than the settings allow. `nowMs` is room time, like the recordings' own times.
    func forget(nowMs: Int64, steadyMs: Int64) async {
        let retentionMs = self.retentionMs
        guard retentionMs > 0 else { return }
        do {
            let old = try await self.rooms.recordings(endedBefore: nowMs - retentionMs, limit: Self.batch)
            guard !old.isEmpty else { return }
            // A clock that was wrong for a long time deletes some recordings, not all.
            let held = try await self.rooms.recordingCount()
            let allowed = self.share.withLock { $0.allowance(held: held, retentionMs: retentionMs, steadyMs: steadyMs) }
            for (index, recording) in old.enumerated() {
                // Old recordings beyond the allowance are deleted only when new ones find no space.
                if index >= allowed, await !DiskWork.run({ [budget] in budget.needsRoom }) { break }
                do {
                    guard try await self.delete(recording) != nil else { continue }
                    self.share.withLock { $0.spend(1) }
                    self.log.info(
                        "Recording deleted: older than recording.retention",
                        metadata: ["id": "\(recording.id)", "file": "\(recording.file)"])
                } catch {
                    // A recording that cannot be removed does not prevent the removal of others.
                    self.log.error("An old recording could not be deleted", metadata: ["id": "\(recording.id)", "error": "\(error)"])
                }
            }
        } catch {
            self.log.error("Old recordings could not be deleted", metadata: ["error": "\(error)"])
        }
    }
}
