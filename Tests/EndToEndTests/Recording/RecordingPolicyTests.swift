import EarshotServer
import Foundation
import Rooms
import ServerTestSupport
import TestSupport
import Testing

@testable import RoomRegistry
@testable import ServerConfiguration
@testable import Streaming

/// Recording by a room's own policy, and recordings by call across server restarts.
@Suite struct RecordingPolicyTests {
    private static func create(_ server: TestServer, _ room: String, record: String) async throws {
        let made = try await server.call("POST", "rooms", #"{"roomId":"\#(room)","policy":{"record":"\#(record)"}}"#)
        #expect(try made.status == 201 && made.json()["data"]["policy"]["record"].string == record, "\(made.text)")
    }

    private static func change(_ server: TestServer, _ room: String, record: String) async throws {
        let changed = try await server.call("PATCH", "rooms/\(room)", #"{"policy":{"record":"\#(record)"}}"#)
        #expect(try changed.status == 200 && changed.json()["data"]["policy"]["record"].string == record, "\(changed.text)")
    }

    /// The room's policy overrides the app's, from its creation on and after each change.
    @Test func aRoomDecides() async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: nil, seconds: 20)
        try await TestServer.run({ $0.recording.apps = ["other"] }) { server in
            try await Self.create(server, "walk", record: "always")
            try await Self.create(server, "quiet", record: "never")
            let wrong = try await server.call("PATCH", "rooms/walk", #"{"policy":{"record":"sometimes"}}"#)
            #expect(wrong.status == 400 && wrong.text.contains("policy.record") && wrong.text.contains("always"), "\(wrong.text)")
            try await ClientProcess.during(FFmpeg.pushForEver(source, to: "\(server.rtmp)/live/walk")) { _ in
                try await ClientProcess.during(FFmpeg.pushForEver(source, to: "\(server.rtmp)/other/quiet2")) { _ in
                    try await server.wait("rooms/walk") { $0["liveStatus"].int == 3 }
                    // A room without a setting follows its app.
                    try await server.wait("recordings?app=other") { $0["list"].count == 1 }
                }
                // A recording without a frame leaves no file.
                try await server.wait("recordings?roomId=walk") { $0["list"].count == 1 }
                try await Self.change(server, "walk", record: "never")
                try await server.wait("rooms/walk") { $0["liveStatus"].int == 1 }
                try await server.wait("recordings?roomId=walk") { $0["list"][0]["reason"].string == "stopped" }
                // A call overrides the policy, and the policy does not end it.
                #expect(try await server.record("walk", "start").status == 200)
                try await Self.change(server, "walk", record: "apps")
                try await server.wait("rooms/walk/events") { $0["list"].list.count { $0["kind"].string == "room.updated" } == 2 }
                #expect(try await server.api("rooms/walk")["liveStatus"].int == 3)
                #expect(try await server.record("walk", "stop").status == 200)
                try await Self.change(server, "walk", record: "always")
                try await server.wait("rooms/walk") { $0["liveStatus"].int == 3 }
            }
        }
        try await TestServer.run({ $0.recording.apps = ["*"] }) { server in
            try await Self.create(server, "quiet", record: "never")
            try await ClientProcess.during(FFmpeg.pushForEver(source, to: "\(server.rtmp)/live/quiet")) { _ in
                try await ClientProcess.during(FFmpeg.pushForEver(source, to: "\(server.rtmp)/live/loud")) { _ in
                    try await server.wait("rooms/quiet") { $0["liveStatus"].int == 1 }
                    try await server.wait("rooms/loud") { $0["liveStatus"].int == 3 }
                    #expect(try await server.api("rooms/quiet")["liveStatus"].int == 1)
                }
            }
            #expect(try await server.recordings("?room=quiet").isEmpty)
        }
    }

    /// Shutdown cuts off a recording by call. It continues as the next file of its task, once the stream is back.
    @Test func aCallOutlivesTheServer() async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: nil, seconds: 20)
        try await Fixture.withDirectory { directory in
            let data = directory.appendingPathComponent("data").path
            let task = try await TestServer.run(data: data) { server in
                try await ClientProcess.during(FFmpeg.pushForEver(source, to: "\(server.rtmp)/live/cam1")) { _ in
                    try await server.wait("rooms/cam1") { $0["state"].string == "live" }
                    let started = try await server.record("cam1", "start").json()["data"]["taskId"].string.orThrow()
                    try await server.wait("recordings") { ($0["list"][0]["bytes"].int ?? 0) > 2_000 }
                    return started
                }
            }
            try await TestServer.run(data: data) { server in
                #expect(try await !server.eventKinds("cam1").contains("record.ended"))
                try await ClientProcess.during(FFmpeg.pushForEver(source, to: "\(server.rtmp)/live/cam1")) { _ in
                    try await server.wait("rooms/cam1") { $0["liveStatus"].int == 3 }
                    try await server.wait("recordings") { $0["list"].count == 2 && ($0["list"][0]["bytes"].int ?? 0) > 2_000 }
                    let stopped = try await server.record("cam1", "stop").json()["data"]
                    #expect(stopped["taskId"].string == task)
                }
                let files = try await server.recordings(2, "finished")
                #expect(files.map(\.["taskId"].string) == [task, task] && files.map(\.["part"].int) == [1, 2])
                #expect(files.map(\.["reason"].string) == ["server_shutdown", "stopped"])
                let events = try await server.eventKinds("cam1").filter { $0 == "record.started" || $0 == "record.ended" }
                #expect(events == ["record.started", "record.ended"])
            }
            // A stopped recording stays stopped.
            try await TestServer.run(data: data) { server in
                try await ClientProcess.during(FFmpeg.pushForEver(source, to: "\(server.rtmp)/live/cam1")) { _ in
                    try await server.wait("rooms/cam1") { $0["liveStatus"].int == 1 }
                    #expect(try await server.record("cam1", "stop").status == 409)
                }
                #expect(try await server.recordings().count == 2)
            }
        }
    }

    /// A recording that waits for its stream can be stopped, and ends with its room.
    @Test func whatWaitsEndsWithACallOrItsRoom() async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: nil, seconds: 20)
        try await Fixture.withDirectory { directory in
            let data = directory.appendingPathComponent("data").path
            try await TestServer.run(data: data) { server in
                for name in ["cam1", "cam2"] {
                    let push = try ClientProcess(FFmpeg.pushForEver(source, to: "\(server.rtmp)/live/\(name)"))
                    defer { push.send(SIGKILL) }
                    try await server.wait("rooms/\(name)") { $0["state"].string == "live" }
                    #expect(try await server.record(name, "start").status == 200)
                    try await server.wait("rooms/\(name)/events") { $0["list"].list.contains { $0["kind"].string == "record.started" } }
                }
            }
            try await TestServer.run(data: data) { server in
                #expect(try await server.record("cam1", "stop").status == 200)
                #expect(try await server.call("POST", "rooms/cam2/close").status == 200)
                for (room, reason) in [("cam1", "stopped"), ("cam2", "stream_ended")] {
                    try await server.wait("rooms/\(room)/events") { events in
                        events["list"].list.contains { $0["kind"].string == "record.ended" && $0["data"]["reason"].string == reason }
                    }
                }
                #expect(try await server.server.parts.rooms.recordingOrders().isEmpty)
            }
        }
    }
}
