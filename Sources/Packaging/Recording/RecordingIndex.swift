package import Rooms
package import Streaming

/// Whoever keeps the list of recordings and pictures, beside the rooms: the registry of rooms. What begins and ends is told in this order, without
/// waiting; `done` is called once it is stored. Any thread.
package protocol RecordingIndex: LiveRooms {
    /// A call began a recording. It goes on after a restart of the server, until it is told as ended.
    func recordingOrdered(_ order: RecordingOrder)
    /// The same for a call with an Idempotency-Key. `isNew`: false if the index has the order.
    func order(_ order: RecordingOrder, isNew: Bool, keeping: KeptAnswer<RecordingOrder>) async throws(RegistryError)
    /// Ends the order's recording for a call with an Idempotency-Key. `isRunning`: its recorder tells the end.
    func endOrder(_ order: RecordingOrder, isRunning: Bool, keeping: KeptAnswer<RecordingOrder>) async throws(RegistryError)
    func recordingOrders() async throws(RegistryError) -> [RecordingOrder]

    /// A file is about to be written. `done`: with false if its row never will be stored.
    func recordingBegan(_ recording: Recording, done: @escaping @Sendable (_ isStored: Bool) -> Void)
    /// The first frames of a task are in the file with this id.
    func recordingStarted(_ id: String)
    /// The file has its last frame and can be finished, or it has failed.
    func recordingEnded(_ id: String, _ outcome: RecordingOutcome, done: @escaping @Sendable () -> Void)
    /// The file has its final form.
    func recordingFinished(_ id: String, bytes: Int64, durationMs: Int64?, isSeekable: Bool, done: @escaping @Sendable () -> Void)
    /// The file to be finished is missing or cannot be read.
    func recordingLost(_ id: String, _ end: RecordingEnd, bytes: Int64)
    /// `wasStarted`: the task has a file with frames.
    func recordingTaskEnded(_ task: RecordingTask, _ end: RecordingEnd, wasStarted: Bool, done: @escaping @Sendable () -> Void)
    /// Ends what the last run left open. Once, before anything is recorded.
    func closeLeftRecordings() async throws(RegistryError)
    /// Nil if there was none.
    func recordingDeleted(_ id: String) async throws(RegistryError) -> Recording?

    func recording(_ id: String) async throws(RegistryError) -> Recording?
    /// Files to be finished, in the order of their rows.
    func unfinishedRecordings(after row: Int64, limit: Int) async throws(RegistryError) -> [Recording]
    /// Those that ended before this time (milliseconds since 1970), oldest first.
    func recordings(endedBefore ms: Int64, limit: Int) async throws(RegistryError) -> [Recording]
    func recordingCount() async throws(RegistryError) -> Int
    /// Bytes of all files that are not removed, for callers with this scope.
    func recordingBytes(scope: TokenScope) async throws(RegistryError) -> Int64

    /// A picture is in its file. Returns those whose files go for it.
    func snapshotTaken(_ snapshot: SnapshotRecord, _ bounds: SnapshotBounds) async throws(RegistryError) -> [SnapshotRecord]
    /// Returns the pictures taken before this time (milliseconds since 1970), whose files go.
    func forgetSnapshots(takenBefore ms: Int64, limit: Int) async throws(RegistryError) -> [SnapshotRecord]
    func snapshotCount() async throws(RegistryError) -> Int
}
