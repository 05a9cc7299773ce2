import Delivery
import Rooms

/// The answer to starting or stopping a recording.
struct RecordingTaskAnswer: Sendable {
    let task: RecordingTask
    let startedAt: Int64
    let isRecording: Bool

    init(_ order: RecordingOrder, isRecording: Bool) {
        self.task = order.task
        self.startedAt = order.startedAt
        self.isRecording = isRecording
    }

    static let outputType = OutputType<RecordingTaskAnswer>.object(
        "RecordingTask",
        [
            .field("taskId", .text, "Shared by all files from this start to its end.", \.task.id),
            .field("roomId", .nullable(.text), "The room.") { $0.task.roomID?.rawValue },
            .field("slot", .whole(1...8), "Which of its streams.", \.task.slot),
            .field("app", .text, "The app.", \.task.path.app),
            .field("name", .text, "The stream's name under the app.", \.task.path.name),
            .field("isRecording", .flag, "True after a start.", \.isRecording),
            .field("since", .instant, "When it was started.", \.startedAt),
        ])
}

/// A recording and the current size of its file.
struct RecordingAnswer: Sendable {
    let recording: Recording
    let bytes: Int64

    init(_ recording: Recording, _ call: APICall) {
        self.recording = recording
        let written = recording.state == .recording ? call.core.recordings.writtenBytes(of: recording.id) : nil
        self.bytes = written ?? recording.bytes
    }

    static let outputType = OutputType<RecordingAnswer>.object(
        "Recording",
        [
            .field("recordingId", .text, "Its id.", \.recording.id),
            .field("taskId", .text, "Shared by all files from one start to its end.", \.recording.task.id),
            .field("part", .count, "Counts the task's files, from 1.", \.recording.part),
            .field("roomId", .nullable(.text), "The room.") { $0.recording.task.roomID?.rawValue },
            .field("slot", .count, "Which of its streams; 0 without a room.", \.recording.task.slot),
            .field("app", .text, "The app.", \.recording.task.path.app),
            .field("name", .text, "The stream's name under the app.", \.recording.task.path.name),
            .field("state", .choice(), "How far its file has come.", \.recording.state),
            .field("reason", .nullable(.choice()), "Why it ended; null while it is being written.", \.recording.reason),
            .field("startedAt", .instant, "When its first frame came.", \.recording.startedAt),
            .field("endedAt", .nullable(.instant), "When its last frame came.", \.recording.endedAt),
            .field("duration", .seconds, "Its length; 0 while it is being written.", \.recording.durationMs),
            .field("bytes", .count, "Of the file, now.", \.bytes),
            .field("videoCodec", .nullable(.text), "As RFC 6381 names it.", \.recording.media.videoCodec),
            .field("audioCodec", .nullable(.text), "As RFC 6381 names it.", \.recording.media.audioCodec),
            .field("width", .nullable(.count), "Pixels.", \.recording.media.width),
            .field("height", .nullable(.count), "Pixels.", \.recording.media.height),
            .field("droppedFrames", .count, "Frames left out because the disk was too slow.", \.recording.droppedFrames),
            .field("isSeekable", .flag, "Its index stands in front; before, it plays in fragments.", \.recording.isSeekable),
            .field("file", .text, "Where it lies, below the folder of the recordings.", \.recording.file),
            .field("url", .text, "Where it is downloaded, below the server's own address.") {
                "\(APIService.prefix)/recordings/\($0.recording.id)/file"
            },
        ])
}

/// A page of recordings.
struct RecordingListAnswer: Sendable {
    let next: Int64?
    let usedBytes: Int64
    let list: [RecordingAnswer]

    static let outputType = OutputType<RecordingListAnswer>.object(
        "RecordingList",
        [
            .field("next", .nullable(.count), "For `after`; null at the end.", \.next),
            .field("usedBytes", .count, "Of all recordings' files.") { max(0, $0.usedBytes) },
            .field("list", .list(RecordingAnswer.outputType), "The page.", \.list),
        ])
}
