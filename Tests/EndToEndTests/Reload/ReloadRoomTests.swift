import RTMP
import ServerTestSupport
import TestSupport
import Testing

/// The policy of rooms that are made after a reload, and who may take over a name. The former times are so long that no test would wait for them.
@Suite struct ReloadRoomTests {
    private static func ends(_ server: ReloadingServer, _ room: String, _ reason: String) async throws {
        try await server.wait("rooms/\(room)") { $0["state"].string == "expired" && $0["stateReason"].string == reason }
    }

    /// Rooms whose publisher is silent, pauses, stops, or goes on for too long.
    @Test func livesOfPublishers() async throws {
        try await ReloadingServer.run([
            "rooms.policy.mediaIdle": "1h", "rooms.policy.idleGrace": "1h", "rooms.policy.pauseGrace": "1h", "rooms.policy.cleanStop": "1h",
        ]) { server in
            try await server.apply(["rooms.policy.mediaIdle": "1h", "rooms.policy.pauseGrace": "1s"])
            let pausing = try await server.livePublisher("pausing")
            #expect(try await server.call("POST", "rooms/pausing/pause", "{}").status == 200)
            try await Self.ends(server, "pausing", "graceOver")

            try await server.apply(["rooms.policy.mediaIdle": "1s", "rooms.policy.idleGrace": "1h"])
            let silent = try await server.livePublisher("silent")
            try await server.wait("rooms/silent") { $0["state"].string == "interrupted" && $0["stateReason"].string == "mediaIdle" }

            try await server.apply([
                "rooms.policy.mediaIdle": "1s", "rooms.policy.idleGrace": "1s", "rooms.policy.pauseGrace": "1h",
                "rooms.policy.cleanStop": "1h",
            ])
            let quiet = try await server.livePublisher("quiet")
            try await Self.ends(server, "quiet", "graceOver")

            try await server.apply(["rooms.policy.cleanStop": "500ms", "rooms.policy.retention": "1s"])
            let stopping = try await server.livePublisher("stopping")
            try await stopping.run { $0.unpublish("stopping", on: 1) }
            // Its id is free again.
            try await eventually("the room to be forgotten") { try await server.call("GET", "rooms/stopping").status == 404 }

            try await server.apply(["rooms.policy.maxDuration": "1s"])
            let long = try await server.livePublisher("long")
            try await Self.ends(server, "long", "maxDuration")
            for client in [silent, pausing, quiet, stopping, long] { await client.close() }
        }
    }

    /// Rooms that nobody pushes to.
    @Test func livesWithoutMedia() async throws {
        try await ReloadingServer.run([
            "rooms.policy.neverStarted": "24h", "rooms.policy.heartbeat": "1h", "rooms.policy.heartbeatMisses": "100",
        ]) { server in
            try await server.apply(["rooms.policy.neverStarted": "1s"])
            try await server.makeRoom("r1")
            try await Self.ends(server, "r1", "neverStarted")

            try await server.apply([
                "rooms.policy.neverStarted": "24h", "rooms.policy.heartbeat": "1s", "rooms.policy.heartbeatMisses": "100",
                "rooms.policy.ownerOffline": "1s",
            ])
            #expect(try await server.call("POST", "rooms", #"{"roomId":"r2","owner":"ada"}"#).status == 201)
            #expect(try await server.call("POST", "rooms/r2/join", #"{"userId":"ada","nick":"Ada"}"#).status == 200)
            #expect(try await server.call("POST", "rooms/r2/leave", #"{"userId":"ada"}"#).status == 200)
            try await Self.ends(server, "r2", "ownerOffline")

            try await server.apply([
                "rooms.policy.neverStarted": "24h", "rooms.policy.heartbeat": "1s", "rooms.policy.heartbeatMisses": "1",
            ])
            try await server.makeRoom("r3")
            #expect(try await server.call("POST", "rooms/r3/heartbeat", "{}").status == 200)
            try await Self.ends(server, "r3", "heartbeatLost")
        }
    }

    @Test func recordingByPolicy() async throws {
        try await ReloadingServer.run { server in
            try await server.apply(["rooms.policy.record": "always", "recording.minFree": "0"])
            let publisher = try await server.livePublisher("cam1")
            try await server.wait("rooms/cam1") { $0["liveStatus"].int == 3 }
            await publisher.close()
        }
    }

    /// Two pushes without a credential from one address count as the same one's.
    @Test func secondPushes() async throws {
        try await ReloadingServer.run { server in
            func isTakenOver(_ name: String) async throws -> Bool {
                let first = try await server.livePublisher(name)
                let isTakenOver = try await server.refusal(.publish, name) == nil
                if isTakenOver { try await first.waitUntilClosed() }
                await first.close()
                return isTakenOver
            }
            #expect(try await isTakenOver("a"))
            try await server.apply(["rooms.duplicatePublish": "reject"])
            #expect(try await !isTakenOver("b"))
            try await server.apply(["rooms.duplicatePublish": "reject", "rooms.duplicatePublishByApp": "[live=takeover]"])
            #expect(try await isTakenOver("c"))
        }
    }
}
