package import Rooms
import Store

/// The index of recordings. Facts: any thread, in submission order, without waiting. Reads see everything answered before.
extension RoomRegistry {
    // MARK: Facts

    /// Records that a call began a recording. It continues after a server restart until it is reported as ended.
    package nonisolated func recordingOrdered(_ order: RecordingOrder) { self.submit { try $0.store.insert(order) } }

    /// The same for a call with an Idempotency-Key. If `isNew` is false, the store already has the order.
    package nonisolated func order(_ order: RecordingOrder, isNew: Bool, keeping: KeptAnswer<RecordingOrder>) async throws(RegistryError) {
        _ = try await self.call(keeping: keeping) { work in
            if isNew { try work.store.insert(order) }
            return order
        }
    }

    /// Ends the order's recording for a call with an Idempotency-Key. If `isRunning`, its recorder reports the end.
    package nonisolated func endOrder(
        _ order: RecordingOrder, isRunning: Bool, keeping: KeptAnswer<RecordingOrder>
    ) async throws(RegistryError) {
        _ = try await self.call(keeping: keeping) { work in
            if isRunning {
                try work.store.deleteRecordingOrder(ofTask: order.task.id)
            } else {
                try work.recordingTaskEnded(order.task, .stopped, wasStarted: order.isStarted)
            }
            return order
        }
    }

    /// Adds the row of a file about to be written. Calls `done` with true once the row is on disk, with false if it never will be.
    package nonisolated func recordingBegan(_ recording: Recording, done: @escaping @Sendable (_ isStored: Bool) -> Void) {
        self.submit(done: done) { try $0.store.insert(recording) }
    }

    /// The first frames of a task are in the file with this id.
    package nonisolated func recordingStarted(_ id: String) { self.submit { try $0.recordingStarted(id) } }

    /// The file has its last frame and can be finished, or it has failed.
    package nonisolated func recordingEnded(_ id: String, _ outcome: RecordingOutcome, done: @escaping @Sendable () -> Void = {}) {
        self.submit(done: done) { try $0.recordingEnded(id, outcome) }
    }

    /// The file has its final form.
    package nonisolated func recordingFinished(
        _ id: String, bytes: Int64, durationMs: Int64?, isSeekable: Bool, done: @escaping @Sendable () -> Void = {}
    ) {
        self.submit(done: done) { try $0.recordingFinished(id, bytes: bytes, durationMs: durationMs, isSeekable: isSeekable) }
    }

    /// The file to be finished is missing or unreadable.
    package nonisolated func recordingLost(_ id: String, _ end: RecordingEnd, bytes: Int64) {
        self.submit { try $0.recordingLost(id, end, bytes: bytes) }
    }

    /// Ends a task. `wasStarted` means that it has a file with frames; without one only a failure is published.
    package nonisolated func recordingTaskEnded(
        _ task: RecordingTask, _ end: RecordingEnd, wasStarted: Bool, done: @escaping @Sendable () -> Void = {}
    ) {
        self.submit(done: done) { try $0.recordingTaskEnded(task, end, wasStarted: wasStarted) }
    }

    /// Ends recordings that the last run left open. Call once, before anything is recorded.
    package nonisolated func closeLeftRecordings() async throws(RegistryError) {
        var last: Int64 = 0
        while let next = try await self.call({ [last] in try $0.closeLeftRecordings(after: last, limit: Self.batch) }) { last = next }
    }

    /// Marks a recording's file as removed. Nil if there is no such recording, or it is not finished or failed.
    package nonisolated func recordingDeleted(_ id: String) async throws(RegistryError) -> Recording? {
        try await self.call { try $0.recordingDeleted(id) }
    }

    // MARK: Reads

    /// Unfinished recordings that calls began, oldest first.
    package nonisolated func recordingOrders() async throws(RegistryError) -> [RecordingOrder] {
        try await self.store.read { try $0.recordingOrders() }
    }

    package nonisolated func recording(_ id: String) async throws(RegistryError) -> Recording? {
        try await self.store.read { try $0.recording(id) }
    }

    /// Recordings, newest first.
    package nonisolated func recordings(_ query: RecordingQuery) async throws(RegistryError) -> [Recording] {
        var query = query
        query.limit = min(max(1, query.limit), 10_000)
        return try await self.store.read { [query] in try $0.recordings(query) }
    }

    /// Recordings waiting for their index, oldest first.
    package nonisolated func unfinishedRecordings(after row: Int64, limit: Int) async throws(RegistryError) -> [Recording] {
        try await self.store.read { try $0.recordings(in: [.finishing], after: row, limit: limit) }
    }

    /// Finished and failed recordings that ended before this time, oldest first.
    package nonisolated func recordings(endedBefore ms: Int64, limit: Int) async throws(RegistryError) -> [Recording] {
        try await self.store.read { try $0.recordings(endedBefore: ms, limit: limit) }
    }

    /// The number of finished and failed files.
    package nonisolated func recordingCount() async throws(RegistryError) -> Int { try await self.store.read { try $0.recordingCount() } }

    /// Bytes of all files that are not removed; files being written count as 0.
    package nonisolated func recordingBytes(scope: TokenScope = .all) async throws(RegistryError) -> Int64 {
        try await self.store.read { try $0.recordingBytes(scope: scope) }
    }
}
