import Access
import Foundation
import PortlessTestSupport
import Rooms
import Media
import ServerConfiguration
import ServerTestSupport
import Support
import TestSupport
import Testing

@testable import EarshotServer

/// A broadcaster's reports, by the credential that it pushes with.
@Suite struct PushHeartbeatTests {
    private static func close(_ config: inout ServerConfig) {
        config.access.publishFrom = []
        config.credentials.key = TestCredential.keys.key
        config.credentials.jwtKey = TestCredential.keys.jwtKey
    }

    @Test func aBroadcastsLife() async throws {
        let tags = try await FLVTag.media(of: Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 2))
        try await PortlessServer.run(Self.close) { server in
            let query = TestCredential.signed("cam1")
            _ = try await server.call("POST", "rooms", #"{"roomId":"cam1"}"#)
            let waiting = try await server.pacedBeat("cam1", query)
            #expect(waiting["state"].string == "created" && waiting["stop"].bool == false && waiting["reason"].isNull)
            #expect(waiting["expiresAt"].string != nil)
            let publisher = try await TagClient.publish(to: server, "live/cam1?\(query)")
            try await publisher.send(tags)
            try await server.wait("rooms/cam1") { $0["state"].string == "live" }
            #expect(try await server.pacedBeat("cam1", query, "resumed")["state"].string == "live")
            // The room keeps the time of it.
            #expect(try await server.api("rooms/cam1")["state"].string == "live")
            let paused = try await server.pacedBeat("cam1", query, "paused")
            #expect(paused["state"].string == "interrupted" && paused["stateReason"].string == "paused" && paused["stop"].bool == false)
            try await eventually("media to make it live again") {
                try await publisher.send(tags)
                return try await server.api("rooms/cam1")["state"].string == "live"
            }
            // The state after the push's end, not the one before.
            let over = try await server.pacedBeat("cam1", query, "finished")
            #expect(
                over["stop"].bool == false && over["state"].string == "interrupted" && over["stateReason"].string == "stopped", "\(over)")
            try await eventually("the push to end") { publisher.current.isClosed || publisher.current.sawEOF }
            try await server.wait("streams/published") { $0["list"][0]["stopReason"].string == "clientStopped" }
            await publisher.close()
            // The answer after a ban says that the broadcaster must stop, and why.
            _ = try await server.call("POST", "streams/live/cam1/forbid", #"{"reason":"face"}"#)
            let forbidden = try await server.pacedBeat("cam1", query)
            #expect(forbidden["stop"].bool == true && forbidden["reason"].string == "face", "\(forbidden)")
            _ = try await server.call("POST", "streams/live/cam1/resume")
            _ = try await server.call("POST", "rooms/cam1/close")
            let closed = try await server.pacedBeat("cam1", query)
            #expect(closed["stop"].bool == true && closed["state"].string == "closed")
        }
    }

    /// The connection was lost before the broadcaster says that it has finished: the room waits as for one that has stopped, not as for one that may
    /// come back.
    @Test func finishedAfterALoss() async throws {
        let tags = try await FLVTag.media(of: Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 2))
        try await PortlessServer.run({
            Self.close(&$0)
            $0.rooms.policy.graceMs = 600_000
            $0.rooms.policy.cleanStopMs = 3_000
        }) { server in
            let query = TestCredential.signed("cam1")
            _ = try await server.call("POST", "rooms", #"{"roomId":"cam1"}"#)
            #expect(try await server.pacedBeat("cam1", query, "finished")["state"].string == "created", "nothing has begun")
            let publisher = try await TagClient.publish(to: server, "live/cam1?\(query)")
            try await publisher.send(tags)
            try await server.wait("rooms/cam1") { $0["state"].string == "live" }
            await publisher.close()
            try await server.wait("rooms/cam1") { $0["stateReason"].string == "publisherLost" }
            let finished = try await server.pacedBeat("cam1", query, "finished")
            #expect(finished["state"].string == "interrupted" && finished["stateReason"].string == "stopped", "\(finished)")
            let left = try finished["expiresAt"].string.flatMap(Instant.ms).orThrow() - Int64(Date().timeIntervalSince1970 * 1_000)
            #expect(left <= 3_000, "\(left) ms")
            server.pass(3_000)
            try await server.wait("rooms/cam1") { $0["state"].string == "expired" }
        }
    }

    /// A ban has ended the push: its publisher learns to stop, though its URL has expired meanwhile, or it needs no credential.
    @Test(arguments: [true, false]) func aBanSaysStop(_ needsCredential: Bool) async throws {
        try await PortlessServer.run({ if needsCredential { Self.close(&$0) } }) { server in
            let query = needsCredential ? TestCredential.signed("cam1", txTime: "5F000000") : ""
            _ = try await server.call("POST", "rooms", #"{"roomId":"cam1"}"#)
            #expect(try await server.beat("cam1", query).status == 401)
            _ = try await server.call("POST", "rooms/cam1/forbid", #"{"reason":"face"}"#)
            let told = try await server.pacedBeat("cam1", query)
            #expect(told["stop"].bool == true && told["reason"].string == "face" && told["state"].string == "forbidden", "\(told)")
            if needsCredential { #expect(try await server.beat("cam1", TestCredential.signed("cam2")).status == 401) }
            _ = try await server.call("POST", "rooms/cam1/resume")
            #expect(try await server.beat("cam1", query).status == 401)
        }
    }

    @Test func whatIsRefused() async throws {
        try await PortlessServer.run(Self.close) { server in
            let query = TestCredential.signed("cam1")
            _ = try await server.call("POST", "rooms", #"{"roomId":"cam1"}"#)
            #expect(try await server.beat("cam1", "").status == 401)
            #expect(try await server.beat("cam1", TestCredential.signed("cam2")).status == 401)
            #expect(try await server.beat("cam2", TestCredential.signed("cam2")).status == 404)
            #expect(try await server.beat("cam1", query, "dancing").status == 400)
            #expect(try await server.beat("cam1/%2E%2E%2Fx", query).status == 400)
            let wrong = try await HTTPAnswer.call("POST", "\(server.http)/push/live/cam1/heartbeat?\(query)", body: Data("[1".utf8))
            #expect(wrong.status == 400 && wrong.text.contains("pushing, paused, resumed, finished"), "\(wrong.text)")
            let large = Data(String(repeating: "x", count: 10_000).utf8)
            #expect(try await HTTPAnswer.call("POST", "\(server.http)/push/live/cam1/heartbeat?\(query)", body: large).status == 413)
            let get = try await server.beat("cam1", query, method: "GET")
            #expect(get.status == 405 && get.headers["allow"] == "POST")
            // Three at once, then one a second.
            var statuses: [Int] = []
            for _ in 0..<100 where !statuses.contains(429) { statuses.append(try await server.beat("cam1", query).status) }
            #expect(statuses.first == 200 && statuses.contains(429), "\(statuses)")
            #expect(
                !server.lines.all.contains { $0.contains(TestCredential.signed("cam2").split(separator: "&")[0].dropFirst(9)) },
                "no secret is logged")
        }
    }
}
