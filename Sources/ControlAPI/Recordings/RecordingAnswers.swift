import HTTPAPI
import Packaging
import Rooms
import Streaming

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
            .field("taskId", .text, "The task's id, shared by all files from this start to its end.", \.task.id),
            .field("roomId", .nullable(.text), "The room.") { $0.task.roomID?.rawValue },
            .field("slot", .whole(1...8), "The stream's slot in the room.", \.task.slot),
            .field("app", .text, "The app.", \.task.path.app),
            .field("name", .text, "The stream's name under the app.", \.task.path.name),
            .field("isRecording", .flag, "True after a start, false after a stop.", \.isRecording),
            .field("since", .instant, "When the recording was started.", \.startedAt),
        ])
}

/// A recording and the current size of its file.
struct RecordingAnswer: Sendable {
    let recording: Recording
    let bytes: Int64

    init(_ recording: Recording, _ call: APICall) {
        self.recording = recording
        let written = recording.state == .recording ? call.services.recordings.writtenBytes(of: recording.id) : nil
        self.bytes = written ?? recording.bytes
    }

    static let outputType = OutputType<RecordingAnswer>.object(
        "Recording",
        [
            .field("recordingId", .text, "The recording's id.", \.recording.id),
            .field("taskId", .text, "The task's id, shared by all files from one start to its end.", \.recording.task.id),
            .field("part", .count, "The file's number in its task, from 1.", \.recording.part),
            .field("roomId", .nullable(.text), "The room.") { $0.recording.task.roomID?.rawValue },
            .field("slot", .count, "The stream's slot in the room; 0 without a room.", \.recording.task.slot),
            .field("app", .text, "The app.", \.recording.task.path.app),
            .field("name", .text, "The stream's name under the app.", \.recording.task.path.name),
            .field("state", .choice(), "The state of the file.", \.recording.state),
            .field("reason", .nullable(.choice()), "Why the file ended; null while it is being written.", \.recording.reason),
            .field("startedAt", .instant, "When the first frame arrived.", \.recording.startedAt),
            .field("endedAt", .nullable(.instant), "When the last frame arrived.", \.recording.endedAt),
            .field("duration", .seconds, "The duration in seconds; 0 while the file is being written.", \.recording.durationMs),
            .field("bytes", .count, "The file's present size in bytes.", \.bytes),
            .field("videoCodec", .nullable(.text), "The codec's RFC 6381 name.", \.recording.media.videoCodec),
            .field("audioCodec", .nullable(.text), "The codec's RFC 6381 name.", \.recording.media.audioCodec),
            .field("width", .nullable(.count), "Pixels.", \.recording.media.width),
            .field("height", .nullable(.count), "Pixels.", \.recording.media.height),
            .field("droppedFrames", .count, "Frames dropped because the disk was too slow.", \.recording.droppedFrames),
            .field(
                "isSeekable", .flag, "Whether the index is at the front of the file; otherwise the file plays in fragments.",
                \.recording.isSeekable),
            .field("file", .text, "The file's path in the folder of recordings.", \.recording.file),
            .field("url", .text, "The download's path below the server's address.") {
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
            .field("next", .nullable(.count), "Pass it as `after` to get the next page; null at the end.", \.next),
            .field("usedBytes", .count, "The size of all recordings' files in bytes.") { max(0, $0.usedBytes) },
            .field("list", .list(RecordingAnswer.outputType), "The recordings of this page.", \.list),
        ])
}
