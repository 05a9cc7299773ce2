import Foundation
import PostgresTestSupport
import RoomStore
import ServerConfiguration
import ServerTestSupport
import Support
import TestSupport
import Testing

/// Two whole servers that share the rooms in one database: calls to either reach the one that has the stream.
@Suite(.enabled(if: TestPostgres.isOn, "on PostgreSQL")) struct ClusterCallTests {
    private static func withTwo(_ body: @Sendable (_ a: TestServer, _ b: TestServer) async throws -> Void) async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("earshot-two-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer {
            TestPostgres.remove(folder)
            try? FileManager.default.removeItem(atPath: folder)
        }
        let url = try TestPostgres.place(of: folder).orThrow().url
        @Sendable func join(_ name: String, _ config: inout ServerConfig) {
            config.database.url = url
            config.cluster.name = name
            config.cluster.key = String(repeating: "k", count: 40)
            config.outbound.allowPrivate = CIDR.loopback
        }
        try await TestServer.run {
            join("a", &$0)
        } _: { a in
            let data = folder + "/b"
            // All know the first one's token, and only that one has made it.
            try FileManager.default.createDirectory(atPath: data, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
            try FileManager.default.copyItem(atPath: a.dataDirectory + "/admin-token", toPath: data + "/admin-token")
            defer { TestPostgres.remove(data) }
            try await TestServer.run(data: data) {
                join("b", &$0)
            } _: { b in
                try await body(a, b)
            }
        }
    }

    @Test func callsAreSentOn() async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 12)
        try await Self.withTwo { a, b in
            // Both know all tokens.
            let token = a.token
            #expect(try await b.call("GET", "rooms", token: token).status == 200)
            let push = try ClientProcess(FFmpeg.pushForEver(source, to: "\(a.rtmp)/live/cam1"))
            defer { push.send(SIGKILL) }
            try await a.wait("streams") { $0["list"][0]["video"]["keyframeIntervalMs"].int != nil }
            let list = try await b.call("GET", "streams", token: token).json()["data"]["list"]
            #expect(list.count == 0, "only calls about one stream are sent on")
            try await eventually("the stream through the other node") {
                try await b.call("GET", "streams/live/cam1", token: token).json()["data"]["state"].string == "active"
            }
            let none = try await b.call("GET", "streams/live/none", token: token)
            #expect(try none.json()["data"]["state"].string == "inactive")

            let picture = try await b.call("GET", "rooms/cam1/snapshot.jpg", token: token)
            #expect(picture.status == 200 && picture.contentType == "image/jpeg", "\(picture.status)")
            #expect(picture.body.starts(with: [0xFF, 0xD8]) && picture.body.count > 1_000)

            let session = try await a.api("sessions")["list"][0]["sessionId"].int.orThrow()
            #expect(session > 1 << 40, "ids are unique among the nodes")
            #expect(try await b.call("GET", "sessions/\(session)", token: token).json()["data"]["publishing"][0].value != nil)

            // Neither the wrong token nor none gets through.
            #expect(try await b.call("GET", "streams/live/cam1", token: "").status == 401)

            let dropped = try await b.call("POST", "streams/live/cam1/drop", "{}", token: token)
            #expect(dropped.status == 200, "\(dropped.text)")
            try await eventually("the end of the push") {
                try await a.api("streams/live/cam1")["state"].string != "active" || !push.isRunning
            }
        }
    }

    /// A forbidden stream ends on the other node, and is refused there.
    @Test func aBanHoldsEverywhere() async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 12)
        try await Self.withTwo { a, b in
            let push = try ClientProcess(FFmpeg.pushForEver(source, to: "\(a.rtmp)/live/cam1"))
            defer { push.send(SIGKILL) }
            try await a.wait("rooms/cam1") { $0["state"].string == "live" }
            let answer = try await b.call("POST", "streams/live/cam1/forbid", "{\"seconds\": 3600}", token: a.token)
            #expect(answer.status == 200, "\(answer.text)")
            try await eventually("the end of the push") { !push.isRunning }
            #expect(try await b.call("GET", "rooms/cam1", token: a.token).json()["data"]["state"].string != "live")
        }
    }

    /// A link that one node was asked for belongs to all: it runs on one of them, and each can end it.
    @Test func linksAreOfAllNodes() async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 12)
        try await TestServer.run { origin in
            let push = try ClientProcess(FFmpeg.pushForEver(source, to: "\(origin.rtmp)/live/cam1"))
            defer { push.send(SIGKILL) }
            try await origin.wait("streams") { $0["list"][0]["video"]["keyframeIntervalMs"].int != nil }
            try await Self.withTwo { a, b in
                let token = a.token
                @Sendable func links(_ server: TestServer) async throws -> JSON {
                    try await server.call("GET", "relay-tasks", token: token).json()["data"]["list"]
                }
                let answer = try await b.call(
                    "POST", "relay-tasks",
                    #"{"direction":"pull","app":"live","name":"copy","url":"\#(origin.rtmp)/live/cam1"}"#, token: token)
                #expect(answer.status == 201, "\(answer.text)")
                try await eventually("the link on the other node") { try await links(a).count == 1 }
                // The first node is the keeper.
                try await a.wait("streams") { $0["list"][0]["name"].string == "copy" }
                #expect(try await b.call("GET", "streams", token: token).json()["data"]["list"].count == 0)
                let id = try await links(b)[0]["taskId"].int.orThrow()
                #expect(try await b.call("DELETE", "relay-tasks/\(id)", token: token).status == 200)
                try await eventually("the link's end on the other node") { try await links(a).count == 0 }
                try await a.wait("streams") { !$0["list"].list.contains { $0["state"].string == "live" } }
            }
        }
    }
}
