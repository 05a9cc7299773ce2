/// The index of recordings. Facts are ordered as called, from any thread, and never wait; reads see what was answered before.
extension RoomRegistry {
    // MARK: Facts

    /// A call has begun a recording: it goes on after a restart of the server until it is told as ended.
    package nonisolated func recordingOrdered(_ order: RecordingOrder) { self.submit { try $0.store.insert(order) } }

    /// The same for a call with an Idempotency-Key. `isNew` false: it goes on with an order that the store has.
    package nonisolated func order(
        _ order: RecordingOrder, isNew: Bool, keeping: KeptAnswer<RecordingOrder>
    ) async throws(RegistryError) {
        _ = try await self.perform(keeping: keeping) { work in
            if isNew { try work.store.insert(order) }
            return order
        }
    }

    /// A call with an Idempotency-Key ends what goes on by this order, if there is one in the store. `isRunning`: what ends it says so.
    package nonisolated func endOrder(
        _ order: RecordingOrder, isRunning: Bool, keeping: KeptAnswer<RecordingOrder>
    ) async throws(RegistryError) {
        _ = try await self.perform(keeping: keeping) { work in
            if isRunning {
                try work.store.deleteRecordingOrder(ofTask: order.task.id)
            } else {
                try work.recordingTaskEnded(order.task, .stopped, wasStarted: order.isStarted)
            }
            return order
        }
    }

    /// A file is about to be written; `done` when its row is on disk (true), or never will be.
    package nonisolated func recordingBegan(_ recording: Recording, done: @escaping @Sendable (_ isStored: Bool) -> Void) {
        self.submit(told: done) { try $0.store.insert(recording) }
    }

    /// The first frames of a task are in the file with this id.
    package nonisolated func recordingStarted(_ id: String) { self.submit { try $0.recordingStarted(id) } }

    /// The file has its last frame: it is to be finished, or has failed.
    package nonisolated func recordingEnded(_ id: String, _ outcome: RecordingOutcome, done: @escaping @Sendable () -> Void = {}) {
        self.submit(done: done) { try $0.recordingEnded(id, outcome) }
    }

    /// The file is as it will stay.
    package nonisolated func recordingFinished(
        _ id: String, bytes: Int64, durationMs: Int64?, isSeekable: Bool, done: @escaping @Sendable () -> Void = {}
    ) {
        self.submit(done: done) { try $0.recordingFinished(id, bytes: bytes, durationMs: durationMs, isSeekable: isSeekable) }
    }

    /// What was to be finished is not there, or not readable.
    package nonisolated func recordingLost(_ id: String, _ end: RecordingEnd, bytes: Int64) {
        self.submit { try $0.recordingLost(id, end, bytes: bytes) }
    }

    /// `wasStarted`: it has a file with something in it. Without one only a failure is told.
    package nonisolated func recordingTaskEnded(
        _ task: RecordingTask, _ end: RecordingEnd, wasStarted: Bool, done: @escaping @Sendable () -> Void = {}
    ) {
        self.submit(done: done) { try $0.recordingTaskEnded(task, end, wasStarted: wasStarted) }
    }

    /// Ends what the last run was recording. To be called once, before anything is recorded.
    package nonisolated func closeLeftRecordings() async throws(RegistryError) {
        var last: Int64 = 0
        while let next = try await self.perform({ [last] in try $0.closeLeftRecordings(after: last, limit: Self.batch) }) { last = next }
    }

    /// Its file is gone. Nil: there is no such recording, or it is not finished.
    package nonisolated func recordingDeleted(_ id: String) async throws(RegistryError) -> Recording? {
        try await self.perform { try $0.recordingDeleted(id) }
    }

    // MARK: Reads

    /// Recordings that calls have begun and that are not over, oldest first.
    package nonisolated func recordingOrders() async throws(RegistryError) -> [RecordingOrder] {
        try await self.store.read { try $0.recordingOrders() }
    }

    package nonisolated func recording(_ id: String) async throws(RegistryError) -> Recording? {
        try await self.store.read { try $0.recording(id) }
    }

    /// Newest first.
    package nonisolated func recordings(_ query: RecordingQuery) async throws(RegistryError) -> [Recording] {
        var query = query
        query.limit = min(max(1, query.limit), 10_000)
        return try await self.store.read { [query] in try $0.recordings(query) }
    }

    /// Those that wait for their index, oldest first.
    package nonisolated func unfinishedRecordings(after row: Int64, limit: Int) async throws(RegistryError) -> [Recording] {
        try await self.store.read { try $0.recordings(in: [.finishing], after: row, limit: limit) }
    }

    /// Oldest first.
    package nonisolated func recordings(endedBefore ms: Int64, limit: Int) async throws(RegistryError) -> [Recording] {
        try await self.store.read { try $0.recordings(endedBefore: ms, limit: limit) }
    }

    /// Finished and failed files.
    package nonisolated func recordingCount() async throws(RegistryError) -> Int { try await self.store.read { try $0.recordingCount() } }

    /// Of all finished and failed files.
    package nonisolated func recordingBytes() async throws(RegistryError) -> Int64 { try await self.store.read { try $0.recordingBytes() } }
}
