import Access
import Foundation
import Rooms
import Support
import TestSupport
import Testing

@testable import Notifications

/// Recordings in the shape of Tencent's callbacks.
@Suite struct RecordCallbackTests {
    private static let data = #"""
        {"app":"live","name":"cam1","slot":1,"taskId":"t1","recordingId":"r1","part":1,"startedAt":"2026-11-21T10:00:00.250Z",\#
        "startedMs":1795255200250,"endedMs":1795255261750,"durationMs":61500,"bytes":7687500,"reason":"stopped"}
        """#

    private static func body(_ kind: RoomEvent.Kind, _ data: String, query: String? = nil) throws -> [String: Any] {
        var sender = WebhookFormTests.sender
        sender.http = "https://live.example.com"
        let request = try WebhookRequest(
            WebhookFormTests.entry(kind, data: data, query: query), sender: sender, atSeconds: 1_795_255_300)
        return try (JSONSerialization.jsonObject(with: Data(request.body.utf8)) as? [String: Any]).orThrow()
    }

    @Test func aFileIsTold() throws {
        let body = try Self.body(.recordFinished, Self.data, query: "sign=ours")
        #expect(body["stream_param"] as? String == "sign=ours")
        #expect(body["event_type"] as? Int == 100)
        #expect(
            body["appname"] as? String == "live" && body["stream_id"] as? String == "cam1" && body["app"] as? String == "live.example.com")
        #expect(body["file_id"] as? String == "r1" && body["record_file_id"] as? String == "r1" && body["task_id"] as? String == "t1")
        #expect(body["file_format"] as? String == "mp4" && body["file_size"] as? Int == 7_687_500)
        #expect(body["start_time"] as? Int == 1_795_255_200 && body["start_time_usec"] as? Int == 250_000)
        #expect(body["end_time"] as? Int == 1_795_255_261 && body["end_time_usec"] as? Int == 750_000)
        #expect(body["duration"] as? Int == 62 && body["record_bps"] as? Int == 1_000)
        // For a day from the sending, without a token.
        let link = FileLinks(WebhookFormTests.keys).signed("/api/v1/recordings/r1/file", expiresAt: 1_795_255_300 + 86_400)
        #expect(body["video_url"] as? String == "https://live.example.com\(link)")
        #expect(body["t"] as? Int == 1_795_255_900)
        #expect(body["sign"] as? String == TencentPushCallback.sign(key: "webhook-key-1", t: 1_795_255_900))
    }

    @Test(arguments: [
        (RoomEvent.Kind.recordStarted, data, "record_start_succeeded"), (.recordEnded, data, "record_ended"),
        (.recordFailed, data, "record_error"),
        (.recordFailed, #"{"app":"live","name":"cam1","slot":1,"taskId":"t1","reason":"disk_full"}"#, "record_start_failed"),
    ]) func itsStatusIsTold(_ kind: RoomEvent.Kind, _ data: String, _ word: String) throws {
        let body = try Self.body(kind, data)
        #expect(body["event_type"] as? Int == 332)
        #expect(body["record_event"] as? String == word)
        #expect(body["domain"] as? String == "live.example.com" && body["stream_id"] as? String == "cam1")
        #expect(body["event_time"] as? Int == 1_795_255_200 && body["seq"] as? Int == 3)
        #expect(body["session_id"] as? String == "t1")
        let detail = try (body["record_detail"] as? String).orThrow()
        #expect(try JSONParser.parse(detail.utf8)["task_id"] == "t1")
    }
}

extension WebhookFormTests {
    fileprivate static func entry(_ kind: RoomEvent.Kind, data: String, query: String?) -> WebhookDelivery {
        Self.entry(1, kind, target: Self.tencent, data: data, query: query)
    }
}
