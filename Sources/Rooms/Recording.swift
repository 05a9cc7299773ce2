/// How far a recording's file has come.
package enum RecordingState: String, Sendable, CaseIterable {
    /// Being written, fragment by fragment.
    case recording
    /// Complete; its index is being put in front.
    case finishing
    case finished
    /// It ended before its time; what had come until then is in the file.
    case failed
    /// The file is gone; the row stays for the length of the history.
    case deleted
}

/// Why a recording's file ended.
package enum RecordingEnd: String, Sendable, CaseIterable {
    /// By the API.
    case stopped
    case streamEnded = "stream_ended"
    /// The next file goes on where it ends.
    case split
    /// Other codecs or formats came, which go to a file of their own.
    case mediaChanged = "media_changed"
    case serverShutdown = "server_shutdown"
    case serverRestart = "server_restart"
    // Failures:
    case quotaExceeded = "quota_exceeded"
    case diskFull = "disk_full"
    /// The folder or the file cannot be written.
    case unwritable
    /// The process may open hardly any file more.
    case noDescriptors = "no_descriptors"
    /// The index of recordings took nothing for too long.
    case storeFailed = "store_failed"
    /// Nothing of the stream can be put into MP4.
    case unsupportedMedia = "unsupported_media"
    /// It ended before its first fragment was whole.
    case empty
    /// The file is not there any more.
    case fileMissing = "file_missing"

    package var isFailure: Bool {
        switch self {
        case .stopped, .streamEnded, .split, .mediaChanged, .serverShutdown, .serverRestart: false
        case .quotaExceeded, .diskFull, .unwritable, .noDescriptors, .storeFailed, .unsupportedMedia, .empty, .fileMissing: true
        }
    }
}

/// Which stream is recorded, from a start to an end: one file, or several one after the other.
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

/// A recording that a call began. It stays until the recording ends by anything but the server's own end: then it goes on, with another file,
/// when its stream is back. A value.
package struct RecordingOrder: Sendable, Equatable {
    package let task: RecordingTask
    /// Milliseconds since 1970.
    package let startedAt: Int64
    /// Files so far.
    package let parts: Int
    /// There are frames in one of them.
    package let isStarted: Bool

    package init(task: RecordingTask, startedAt: Int64, parts: Int = 0, isStarted: Bool = false) {
        self.task = task
        self.startedAt = startedAt
        self.parts = parts
        self.isStarted = isStarted
    }
}

/// What is in a recording's file.
package struct RecordingMedia: Sendable, Equatable {
    package var videoCodec: String?
    package var audioCodec: String?
    /// Pixels.
    package var width: Int?
    package var height: Int?

    package init(videoCodec: String? = nil, audioCodec: String? = nil, width: Int? = nil, height: Int? = nil) {
        self.videoCodec = videoCodec
        self.audioCodec = audioCodec
        self.width = width
        self.height = height
    }
}

/// A recording's file as the store lists it. A value.
package struct Recording: Sendable, Equatable {
    /// 16 hexadecimal digits.
    package let id: String
    package let task: RecordingTask
    /// Counts the task's files, from 1.
    package let part: Int
    package var state: RecordingState
    /// Nil while it is being written.
    package var reason: RecordingEnd?
    /// Below the recordings' folder.
    package let file: String
    /// Milliseconds since 1970, of its first frame.
    package let startedAt: Int64
    /// Milliseconds since 1970, of its last frame.
    package var endedAt: Int64?
    package var durationMs: Int64
    /// Of the file; 0 while it is being written.
    package var bytes: Int64
    package let media: RecordingMedia
    /// Frames left out because the disk was too slow.
    package var droppedFrames: Int64
    /// The index stands in front of the media.
    package var isSeekable: Bool
    /// Its place in lists; grows, and is never used twice.
    package let row: Int64

    /// A new one, being written.
    package init(
        id: String, task: RecordingTask, part: Int, file: String, startedAt: Int64, media: RecordingMedia, row: Int64 = 0
    ) {
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

/// How a recording's file ended, as its writer knows.
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
    /// Nil: all but deleted ones.
    package var state: RecordingState?
    /// The `row` of the last one of the page before.
    package var after: Int64?
    package var limit = 100
    package init() {}
}
