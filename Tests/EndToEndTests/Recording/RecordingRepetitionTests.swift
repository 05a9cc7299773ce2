import Foundation
import ServerTestSupport
import TestSupport
import Testing

/// Starting and stopping a recording with an Idempotency-Key.
@Suite struct RecordingRepetitionTests {
    @Test func eachIsOnceAndTogetherWithItsAnswer() async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 30)
        try await TestServer.run { server in
            try await ClientProcess.during(FFmpeg.push(source, to: "\(server.rtmp)/live/cam1")) { _ in
                try await server.wait("rooms/cam1") { $0["state"].string == "live" }
                func record(_ action: String, _ key: String) async throws -> HTTPAnswer {
                    try await server.call(
                        "POST", "rooms/cam1/record", #"{"action":"\#(action)"}"#, headers: ["Idempotency-Key": key])
                }
                func isRecording() async throws -> Bool { try await server.api("rooms/cam1")["liveStatus"].int == 3 }
                try await server.changeStore(StoreTrigger.noAnswers)
                #expect(try await record("start", "a").status == 503)
                #expect(try await !isRecording())
                try await server.changeStore("DROP TRIGGER no_answers")
                let started = try await record("start", "a")
                #expect(started.status == 200 && started.headers["idempotency-replayed"] == nil, "\(started.text)")
                #expect(try await isRecording())
                let again = try await record("start", "a")
                #expect(again.headers["idempotency-replayed"] == "true" && again.body == started.body)
                // A request with another key is judged by itself.
                #expect(try await record("start", "b").status == 409)
                _ = try await server.recordings(1, "recording")
                try await server.changeStore(StoreTrigger.noAnswers)
                #expect(try await record("stop", "c").status == 503)
                #expect(try await isRecording())
                try await server.changeStore("DROP TRIGGER no_answers")
                let stopped = try await record("stop", "c")
                #expect(stopped.status == 200, "\(stopped.text)")
                #expect(try stopped.json()["data"]["taskId"].string == started.json()["data"]["taskId"].string)
                #expect(try await !isRecording())
                let replayed = try await record("stop", "c")
                #expect(replayed.headers["idempotency-replayed"] == "true" && replayed.body == stopped.body)
                _ = try await server.recordings(1, "finished")
                #expect(try await server.eventKinds("cam1").count { $0 == "record.ended" } == 1)
            }
        }
    }
}
