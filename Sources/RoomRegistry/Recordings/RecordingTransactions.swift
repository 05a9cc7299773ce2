import Rooms
import Support

/// Changes of recordings. Each change of a row and its event are one transaction.
extension RoomTransaction {
    /// The first frames of a task are in its first file.
    func recordingStarted(_ id: String) throws {
        guard let recording = try self.store.recording(id) else { return }
        try self.store.startRecordingOrder(ofTask: recording.task.id)
        try self.event(.recordStarted, of: recording)
    }

    func recordingEnded(_ id: String, _ outcome: RecordingOutcome) throws {
        guard var recording = try self.store.recording(id), recording.state == .recording else { return }
        recording.reason = outcome.end
        // `startedAt` may have moved with the clock since the last frame.
        recording.endedAt = max(outcome.endedAt, recording.startedAt)
        recording.durationMs = outcome.durationMs
        recording.bytes = outcome.bytes
        recording.droppedFrames = outcome.droppedFrames
        recording.state = outcome.end.isFailure ? .failed : .finishing
        try self.store.update(recording)
        if recording.state == .failed { try self.event(.recordFailed, of: recording) }
    }

    /// The index precedes the media, or the file stays in fragments (`isSeekable` false). A failed recording stays failed.
    func recordingFinished(_ id: String, bytes: Int64, durationMs: Int64?, isSeekable: Bool) throws {
        guard var recording = try self.store.recording(id), recording.state == .finishing || recording.state == .failed else { return }
        recording.bytes = bytes
        if let durationMs { recording.durationMs = durationMs }
        recording.isSeekable = isSeekable
        let isNews = recording.state == .finishing
        if isNews { recording.state = .finished }
        try self.store.update(recording)
        if isNews { try self.event(.recordFinished, of: recording) }
    }

    /// Marks a recording that cannot be finished as failed.
    func recordingLost(_ id: String, _ end: RecordingEnd, bytes: Int64) throws {
        guard var recording = try self.store.recording(id), recording.state == .finishing || recording.state == .failed else { return }
        let isNews = recording.state == .finishing
        // A recording that failed before keeps its first reason.
        if isNews { recording.reason = end }
        recording.state = .failed
        recording.bytes = bytes
        try self.store.update(recording)
        if isNews { try self.event(.recordFailed, of: recording) }
    }

    /// Ends a task after its last file. A task that failed before its first file is reported as failed. A task started by a call outlives the server.
    func recordingTaskEnded(_ task: RecordingTask, _ end: RecordingEnd, wasStarted: Bool) throws {
        if try self.store.hasRecordingOrder(ofTask: task.id) {
            if end == .serverShutdown || end == .serverRestart { return }
            try self.store.deleteRecordingOrder(ofTask: task.id)
        }
        if wasStarted {
            let files = try self.store.recordingParts(ofTask: task.id)
            try self.event(.recordEnded, of: task, RecordingDetails(task, end, files: files))
        } else if end.isFailure, try self.store.recordingParts(ofTask: task.id) == 0 {
            try self.event(.recordFailed, of: task, RecordingDetails(task, end))
        }
    }

    /// Marks a batch of files that the last run was writing as to be finished. Returns the last one's row; nil if there are no more.
    func closeLeftRecordings(after row: Int64, limit: Int) throws -> Int64? {
        let left = try self.store.recordings(in: [.recording], after: row, limit: limit)
        for var recording in left {
            recording.state = .finishing
            recording.reason = .serverRestart
            recording.endedAt = self.now
            try self.store.update(recording)
            try self.recordingTaskEnded(recording.task, .serverRestart, wasStarted: true)
        }
        return left.last?.row
    }

    /// Marks the file as removed and returns the former recording. Nil unless it was finished or failed.
    func recordingDeleted(_ id: String) throws -> Recording? {
        guard var recording = try self.store.recording(id), recording.state == .finished || recording.state == .failed else { return nil }
        let old = recording
        recording.state = .deleted
        recording.bytes = 0
        try self.store.update(recording)
        return old
    }

    // MARK: Events

    private func event(_ kind: RoomEvent.Kind, of recording: Recording) throws {
        try self.event(kind, of: recording.task, RecordingDetails(recording))
    }

    /// Adds the event to the task's room if that still exists.
    private func event(_ kind: RoomEvent.Kind, of task: RecordingTask, _ details: RecordingDetails) throws {
        guard let id = task.roomID, var room = try self.store.room(id.rawValue) else {
            return try self.event(kind, of: task.path, details.members)
        }
        let old = room
        try self.event(kind, of: &room, details.members)
        try self.save(from: old, to: room)
    }
}
