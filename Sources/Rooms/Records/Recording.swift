/// The state of a recording's file.
package enum RecordingState: String, Sendable, CaseIterable {
    /// Being written, fragment by fragment.
    case recording
    /// Complete; its index is being moved to the front.
    case finishing
    case finished
    /// Ended early; the file holds the media received until then.
    case failed
    /// The file was removed; the row stays for the length of the history.
    case deleted
}

/// Why a recording's file ended.
package enum RecordingEnd: String, Sendable, CaseIterable {
    /// Stopped by the API.
    case stopped
    case streamEnded = "stream_ended"
    /// The next file continues where this one ends.
    case split
    /// The codecs or formats changed, which requires a new file.
    case mediaChanged = "media_changed"
    case serverShutdown = "server_shutdown"
    case serverRestart = "server_restart"
    // Failures:
    case quotaExceeded = "quota_exceeded"
    case diskFull = "disk_full"
    /// The folder or the file cannot be written.
    case unwritable
    /// The process is near its limit of open files.
    case noDescriptors = "no_descriptors"
    /// The index of recordings accepted no writes for too long.
    case storeFailed = "store_failed"
    /// None of the stream's media can be put into MP4.
    case unsupportedMedia = "unsupported_media"
    /// Ended before its first fragment was complete.
    case empty
    /// The file no longer exists.
    case fileMissing = "file_missing"

    package var isFailure: Bool {
        switch self {
        case .stopped, .streamEnded, .split, .mediaChanged, .serverShutdown, .serverRestart: false
        case .quotaExceeded, .diskFull, .unwritable, .noDescriptors, .storeFailed, .unsupportedMedia, .empty, .fileMissing: true
        }
    }
}

/// A stream's recording from start to end, in one or more consecutive files.
package struct RecordingTask: Sendable, Equatable {
    /// 16 hexadecimal digits.
    package let id: String
    package let path: StreamPath
    /// Nil for streams without a room.
    package let roomID: RoomID?
    package let slot: Int

    package init(id: String, path: StreamPath, roomID: RoomID?, slot: Int) {
        self.id = id
        self.path = path
        self.roomID = roomID
        self.slot = slot
    }
}

/// A recording started by a call. It survives the server's own end and continues in another file when its stream is back; any other end
/// removes it. A value.
package struct RecordingOrder: Sendable, Equatable {
    package let task: RecordingTask
    /// Milliseconds since 1970.
    package let startedAt: Int64
    /// Number of files so far.
    package let parts: Int
    /// Whether any of the files has frames.
    package let isStarted: Bool

    package init(task: RecordingTask, startedAt: Int64, parts: Int = 0, isStarted: Bool = false) {
        self.task = task
        self.startedAt = startedAt
        self.parts = parts
        self.isStarted = isStarted
    }
}

/// A recording's file as the store lists it. A value.
package struct Recording: Sendable, Equatable {
    /// 16 hexadecimal digits.
    package let id: String
    package let task: RecordingTask
    /// The file's number within its task, from 1.
    package let part: Int
    package var state: RecordingState
    /// Nil while the file is being written.
    package var reason: RecordingEnd?
    /// Path below the recordings' folder.
    package let file: String
    /// Time of the first frame, in milliseconds since 1970.
    package let startedAt: Int64
    /// Time of the last frame, in milliseconds since 1970.
    package var endedAt: Int64?
    package var durationMs: Int64
    /// Size of the file; 0 while it is being written.
    package var bytes: Int64
    package let media: MediaSummary
    /// Frames dropped because the disk was too slow.
    package var droppedFrames: Int64
    /// Whether the index precedes the media.
    package var isSeekable: Bool
    /// Position in lists; grows and is never reused.
    package let row: Int64

    /// Makes a recording whose file is being written.
    package init(id: String, task: RecordingTask, part: Int, file: String, startedAt: Int64, media: MediaSummary, row: Int64 = 0) {
        self.id = id
        self.task = task
        self.part = part
        self.state = .recording
        self.file = file
        self.startedAt = startedAt
        self.durationMs = 0
        self.bytes = 0
        self.media = media
        self.droppedFrames = 0
        self.isSeekable = false
        self.row = row
    }
}

/// The end of a recording's file, as its writer reports it.
package struct RecordingOutcome: Sendable, Equatable {
    package let end: RecordingEnd
    /// Milliseconds since 1970.
    package let endedAt: Int64
    package let durationMs: Int64
    package let bytes: Int64
    package let droppedFrames: Int64

    package init(end: RecordingEnd, endedAt: Int64, durationMs: Int64, bytes: Int64, droppedFrames: Int64) {
        self.end = end
        self.endedAt = endedAt
        self.durationMs = durationMs
        self.bytes = bytes
        self.droppedFrames = droppedFrames
    }
}

/// A page of recordings, newest first.
package struct RecordingQuery: Sendable, Equatable {
    package var room: String?
    package var app: String?
    package var name: String?
    /// Nil selects all but deleted ones.
    package var state: RecordingState?
    /// The `row` of the previous page's last recording.
    package var after: Int64?
    package var limit = 100
    /// Only recordings of this scope.
    package var scope = TokenScope.all
    package init() {}
}
