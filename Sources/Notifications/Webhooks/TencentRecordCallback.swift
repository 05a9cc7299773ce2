import Access
import Rooms
import Support

/// Recordings in the format of Tencent Cloud's callbacks: a file (100) or a status (332). Pure.
struct TencentRecordCallback: TencentCallback {
    let event: RoomEvent
    let record: RecordingDetails
    /// The query of the recorded push.
    let query: String

    var stream: StreamPath { self.record.path }

    func fields(_ sender: WebhookSender, atSeconds: Int64) -> [(String, JSONValue)] {
        self.event.kind == .recordFinished ? self.file(sender, atSeconds) : self.status(sender)
    }

    private func file(_ sender: WebhookSender, _ atSeconds: Int64) -> [(String, JSONValue)] {
        let file = self.record.file
        let id = file?.id ?? ""
        let (start, end) = (file?.startedAt ?? self.event.at, file?.endedAt ?? self.event.at)
        let durationMs = file?.durationMs ?? 0
        let bytes = file?.bytes ?? 0
        let url = sender.link("\(PublicAddress.apiPrefix)/recordings/\(id)/file", atSeconds: atSeconds)
        return [
            ("event_type", 100), ("file_id", .string(id)), ("record_file_id", .string(id)), ("file_format", "mp4"),
            ("task_id", .string(self.record.taskID)), ("start_time", .integer(start / 1_000)), ("end_time", .integer(end / 1_000)),
            ("start_time_usec", .integer(start % 1_000 * 1_000)), ("end_time_usec", .integer(end % 1_000 * 1_000)),
            ("duration", .integer((durationMs + 500) / 1_000)), ("file_size", .integer(bytes)), ("stream_param", .string(self.query)),
            ("video_url", .string(url)), ("media_start_time", 0),
            // Kilobits a second.
            ("record_bps", .integer(durationMs > 0 ? bytes * 8 / durationMs : 0)), ("callback_ext", "{}"),
        ]
    }

    private func status(_ sender: WebhookSender) -> [(String, JSONValue)] {
        let record = self.record
        let word =
            switch self.event.kind {
            case .recordStarted: "record_start_succeeded"
            case .recordFailed: record.file == nil || record.file?.bytes == 0 ? "record_start_failed" : "record_error"
            default: "record_ended"
            }
        var detail: [(String, JSONValue)] = [("task_id", .string(record.taskID))]
        if let id = record.file?.id { detail.append(("file_id", .string(id))) }
        if let reason = record.reason { detail.append(("reason", .string(reason))) }
        return [
            ("event_type", 332), ("domain", .string(sender.domain)), ("event_time", .integer(self.event.at / 1_000)),
            ("record_event", .string(word)), ("record_detail", .string(JSONValue.object(detail.map(JSONValue.Member.init)).text)),
            ("seq", .integer(self.event.number)), ("session_id", .string(record.taskID)), ("task_id", .string(record.taskID)),
        ]
    }
}
