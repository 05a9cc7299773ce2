import Foundation
import RoomRegistry
import Rooms
import ServerTestSupport
import Store
import Support
import TestSupport
import Testing

@testable import Access
@testable import EarshotServer
@testable import Notifications
@testable import ServerConfiguration
@testable import Streaming

/// Snapshots taken at an interval.
@Suite struct PeriodicSnapshotTests {
    /// Snapshots are taken while the room is live and reported in both webhook forms. Only the newest are kept, and old ones expire.
    @Test func picturesOfALiveStream() async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 20)
        let receiver = try await WebhookReceiver.start()
        try await TestServer.run({
            $0.snapshots.intervalMs = 3_600_000
            $0.snapshots.intervalByAppMs = ["live": 1_000]
            $0.snapshots.keep = 2
            $0.snapshots.width = 160
            $0.webhooks.tencentURLs = [receiver.url]
            $0.outbound.allowPrivate = CIDR.loopback
            $0.urls.http = "https://live.example.com"
        }) { server in
            try await ClientProcess.during(FFmpeg.pushForEver(source, to: "\(server.rtmp)/live/cam1?uid=5&sign=ours")) { _ in
                try await eventually("the room") { try await server.api("rooms/cam1")["state"].string == "live" }
                #expect(try await server.call("POST", "rooms/cam1/record", #"{"action":"start"}"#).status == 200)
                try await eventually("four pictures to be told") {
                    try await server.eventKinds("cam1").count { $0 == "snapshot.taken" } >= 4
                }
                let list = try await server.api("rooms/cam1/snapshots")["list"].list
                #expect(list.count == 2 && list.allSatisfy { $0["width"].int == 160 && $0["height"].int == 120 })
                #expect(list.map { $0["takenAt"].string ?? "" } == list.map { $0["takenAt"].string ?? "" }.sorted(by: >))
                let newest = try #require(list.first)
                let url = try server.http + newest["url"].string.orThrow()
                let answer = try await HTTPAnswer.get(url, token: server.token)
                // It may have been replaced by the next one meanwhile.
                if answer.status == 200 {
                    #expect(answer.contentType == "image/jpeg" && answer.body.count == newest["bytes"].int)
                    #expect(answer.body.prefix(2) == Data([0xFF, 0xD8]))
                } else {
                    #expect(answer.status == 404)
                }
                #expect(try await HTTPAnswer.get(url).status == 401)
            }
            // A room that is no longer live gets no new snapshots.
            try await server.wait("rooms/cam1") { $0["state"].string == "interrupted" }
            // One that was being taken may still displace another.
            try await eventually("two files, and nothing half-written") {
                let files = try FileManager.default.subpathsOfDirectory(atPath: "\(server.dataDirectory)/snapshots").filter {
                    $0.contains(".")
                }
                return files.count == 2 && files.allSatisfy { $0.hasSuffix(".jpg") }
            }
            for (query, status) in [("?limit=1", 200), ("?slot=1", 200), ("?slot=9", 400), ("?after=0", 400)] {
                #expect(try await server.call("GET", "rooms/cam1/snapshots\(query)").status == status, "\(query)")
            }
            #expect(try await server.api("rooms/cam1/snapshots?limit=1")["next"].int != nil)
            #expect(try await server.call("GET", "snapshots/0123456789abcdef/file").status == 404)
            try await eventually("a callback") { receiver.accepted.contains { $0.json["event_type"].int == 200 } }
            let told = try #require(receiver.accepted.first { $0.json["event_type"].int == 200 }).json
            #expect(told["stream_id"].string == "cam1" && told["width"].int == 160 && told["height"].int == 120)
            #expect(told["file_size"].int ?? 0 > 500 && told["create_time"].int ?? 0 > 1_700_000_000)
            let path = try told["pic_url"].string.orThrow()
            let base = "https://live.example.com"
            let url = try told["pic_full_url"].string.orThrow()
            #expect(path.hasPrefix("/api/v1/snapshots/") && url.hasPrefix("\(base)\(path)?expires="))
            // The back end that gets it has no token, and reaches the server by its public address. The picture may be gone by now.
            #expect([200, 404].contains(try await server.request("GET", String(url.dropFirst(base.count))).status))
            // What the back end put into the push's URL comes back to it, and to nobody else.
            try await eventually("the recording's callback") { receiver.accepted.contains { $0.json["event_type"].int == 100 } }
            for kind in [1, 100] {
                let told = receiver.accepted.first { $0.json["event_type"].int == kind }?.json
                #expect(told?["stream_param"].string == "uid=5&sign=ours", "\(kind)")
            }
            let begin = try await server.api("events?kinds=stream.begin")["list"].list.first
            #expect(begin?["data"]["parameters"].string == "uid=5&sign=***")
            #expect(told["sign"].string == TencentPushCallback.sign(key: server.server.parts.keys.webhookKey, t: Int64(told["t"].int ?? 0)))
        }
        await receiver.stop()
    }

    /// A stream with one keyframe gives one snapshot, however long it lasts.
    @Test func withoutANewKeyframeNothingIsTaken() async throws {
        let one = ["-c:v", "libx264", "-profile:v", "baseline", "-g", "1000", "-keyint_min", "1000", "-sc_threshold", "0"]
        let source = try await Fixture.flv(video: one, audio: nil, seconds: 8)
        try await TestServer.run({ $0.snapshots.intervalMs = 500 }) { server in
            let pushed = try await ClientProcess.run(FFmpeg.push(source, to: "\(server.rtmp)/live/cam1"))
            #expect(pushed.status == 0)
            try await eventually("a picture") { try await server.eventKinds("cam1").contains("snapshot.taken") }
            #expect(try await server.eventKinds("cam1").count { $0 == "snapshot.taken" } == 1)
        }
        // No snapshots unless configured.
        try await TestServer.run { server in
            let pushed = try await ClientProcess.run(FFmpeg.push(source, to: "\(server.rtmp)/live/cam1"))
            #expect(pushed.status == 0)
            #expect(try await !server.eventKinds("cam1").contains("snapshot.taken"))
            #expect(!FileManager.default.fileExists(atPath: "\(server.dataDirectory)/snapshots"))
        }
    }

    /// A folder that cannot be written is logged once; the stream goes on.
    @Test func whatCannotBeFiledIsToldOnce() async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: nil, seconds: 5)
        try await TestServer.run({
            $0.snapshots.intervalMs = 500
            $0.snapshots.directory = "/dev/null/pictures"
            $0.recording.minFreeBytes = 0
        }) { server in
            let pushed = try await ClientProcess.run(FFmpeg.push(source, to: "\(server.rtmp)/live/cam1"))
            #expect(pushed.status == 0)
            #expect(await server.lines.comes("No snapshot was taken"))
            #expect(server.lines.all.count { $0.contains("No snapshot was taken") } == 1)
            #expect(try await server.api("rooms/cam1/snapshots")["list"].count == 0)
        }
    }

    @Test func theOldestMakeRoom() async throws {
        let directory = NSTemporaryDirectory() + "snapshots-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let registry = try RoomRegistry(.folder(directory), settings: RoomRegistry.Settings())
        try await registry.start()
        let room = try RoomID(checking: "r")
        func add(_ id: String, _ stream: String, at: Int64, bytes: Int64, keep: Int = 10, quota: Int64 = 100) async throws -> [String] {
            let snapshot = SnapshotRecord(
                id: id, path: StreamPath(app: "live", name: stream), roomID: room, slot: 1, file: id, takenAt: at, bytes: bytes, width: 16,
                height: 16)
            return try await registry.snapshotTaken(snapshot, SnapshotBounds(perStream: keep, bytes: quota)).map(\.id)
        }
        #expect(try await add("a", "x", at: 1, bytes: 40) == [])
        #expect(try await add("b", "y", at: 2, bytes: 40) == [])
        #expect(try await add("c", "y", at: 3, bytes: 60) == ["a"])
        #expect(try await add("d", "z", at: 4, bytes: 100) == ["b", "c"])
        #expect(try await add("e", "z", at: 5, bytes: 1, keep: 1) == ["d"])
        #expect(try await registry.forgetSnapshots(takenBefore: 5, limit: 10) == [])
        #expect(try await registry.forgetSnapshots(takenBefore: 6, limit: 10).map(\.id) == ["e"])
        #expect(try await registry.snapshots(ofRoom: room, slot: nil, after: nil, limit: 10).isEmpty)
        await registry.stop()
    }
}
