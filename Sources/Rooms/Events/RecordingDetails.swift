package import Support

/// A recording's file or task, in its events. A value.
package struct RecordingDetails: Sendable, Equatable {
    package let path: StreamPath
    package let slot: Int
    package let taskID: String
    /// Nil in the events of a task.
    package let file: File?
    /// The reason why the file or the task ended; nil also for a reason that only another version knows.
    package let reason: String?
    /// The number of the task's files, at its end.
    package let files: Int?

    /// Values that the event does not have are nil; numbers of a file that is being written are 0.
    package struct File: Sendable, Equatable {
        package let id: String
        package let part: Int?
        /// Milliseconds since 1970.
        package let startedAt: Int64?
        package let endedAt: Int64?
        package let durationMs: Int64?
        package let bytes: Int64?
        package let media: MediaSummary
    }

    /// A file.
    package init(_ recording: Recording) {
        self.init(
            recording.task,
            file: File(
                id: recording.id, part: recording.part, startedAt: recording.startedAt, endedAt: recording.endedAt,
                durationMs: recording.durationMs, bytes: recording.bytes, media: recording.media),
            reason: recording.reason, files: nil)
    }

    /// A task that ended. `files`: their number; nil if it failed before the first.
    package init(_ task: RecordingTask, _ end: RecordingEnd, files: Int? = nil) {
        self.init(task, file: nil, reason: end, files: files)
    }

    private init(_ task: RecordingTask, file: File?, reason: RecordingEnd?, files: Int?) {
        self.path = task.path
        self.slot = task.slot
        self.taskID = task.id
        self.file = file
        self.reason = reason?.rawValue
        self.files = files
    }

    init(_ data: EventFields) throws(EventDataError) {
        self.path = try data.path()
        self.slot = Int(try data.number("slot"))
        self.taskID = try data.text("taskId")
        self.file = try File(data)
        self.reason = try data.optionalText("reason")
        self.files = try data.optionalNumber("files").map { Int($0) }
    }

    package var members: [JSONValue.Member] {
        var data: [JSONValue.Member] = []
        data.add("app", self.path.app)
        data.add("name", self.path.name)
        data.add("slot", self.slot)
        data.add("taskId", self.taskID)
        if let file = self.file { data += file.members }
        data.add("reason", self.reason)
        data.add("files", self.files)
        return data
    }
}

extension RecordingDetails.File {
    fileprivate init?(_ data: EventFields) throws(EventDataError) {
        guard let id = try data.optionalText("recordingId") else { return nil }
        self.id = id
        self.part = try data.optionalNumber("part").map { Int($0) }
        self.startedAt = try data.optionalNumber("startedMs")
        self.endedAt = try data.optionalNumber("endedMs")
        self.durationMs = try data.optionalNumber("durationMs")
        self.bytes = try data.optionalNumber("bytes")
        self.media = try data.media()
    }

    fileprivate var members: [JSONValue.Member] {
        var data: [JSONValue.Member] = []
        data.add("recordingId", self.id)
        data.add("part", self.part)
        data.add("startedAt", self.startedAt.map(Instant.text))
        data.add("startedMs", self.startedAt)
        data.add("endedAt", self.endedAt.map(Instant.text))
        data.add("endedMs", self.endedAt)
        data.add("durationMs", self.durationMs)
        data.add("bytes", self.bytes)
        return data + self.media.members
    }
}
