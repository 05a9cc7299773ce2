import NIOCore
import RTMP
import ServerTestSupport
import TestSupport
import Testing

/// Rules of talk channels that open after a reload. The former times are so long that no test would wait for them.
@Suite struct ReloadTalkTests {
    /// Publishes as the participant, and returns the state of its request for the floor.
    private static func floor(
        _ server: ReloadingServer, _ room: String, _ user: String, role: String = "guest", _ clients: inout [RawClient]
    ) async throws -> String? {
        let client = try await RawClient.connected(server.rtmpPort, app: "talk")
        clients.append(client)
        try await client.publish("\(room)/\(user)", on: client.createStream())
        try await server.wait("rooms/\(room)/talk") { $0["members"].list.contains { $0["userId"].string == user } }
        let body = "{\"action\":\"request\",\"userId\":\"\(user)\",\"role\":\"\(role)\"}"
        return try await server.call("POST", "rooms/\(room)/talk/floor", body).json()["data"]["state"].string
    }

    private static func holders(_ server: ReloadingServer, _ room: String) async throws -> [String] {
        try await server.api("rooms/\(room)/talk")["holders"].list.compactMap(\.string)
    }

    /// Push to talk: who gets the floor, and for how long.
    @Test func theFloor() async throws {
        try await ReloadingServer.run(["talk.maxHold": "10m", "talk.idle": "1m"]) { server in
            var clients: [RawClient] = []
            try await server.makeRoom("r0")
            #expect(try await server.call("POST", "rooms/r0/talk/floor", #"{"action":"request","userId":"ann"}"#).status == 409)
            try await server.apply(["talk.always": "true", "talk.maxHold": "10m", "talk.idle": "1m"])
            #expect(try await Self.floor(server, "r0", "ann", &clients) == "holding")
            #expect(try await Self.floor(server, "r0", "ben", &clients) == "holding")

            try await server.apply([
                "talk.always": "true", "talk.mode": "ptt", "talk.preempts": "true", "talk.maxHold": "10m", "talk.idle": "1m",
                "talk.ducks": "true",
            ])
            try await server.makeRoom("r1")
            #expect(try await Self.floor(server, "r1", "ann", &clients) == "holding")
            #expect(try await Self.floor(server, "r1", "ben", &clients) == "waiting")
            #expect(try await Self.floor(server, "r1", "cat", role: "host", &clients) == "holding")
            #expect(try await Self.holders(server, "r1") == ["cat"])
            let (former, new) = (try await server.api("rooms/r0/talk"), try await server.api("rooms/r1/talk"))
            #expect(former["ducks"].bool == false && new["ducks"].bool == true)

            for (room, setting, reason) in [("r2", "talk.idle", "idle"), ("r3", "talk.maxHold", "maxHold")] {
                // Who does not speak is idle: the floor of the second room is held by somebody who may be for a minute.
                let isIdle = setting == "talk.idle"
                try await server.apply([
                    "talk.always": "true", "talk.mode": "ptt", "talk.idle": isIdle ? "300ms" : "1m", "talk.maxHold": isIdle ? "10m" : "1s",
                ])
                try await server.makeRoom(room)
                #expect(try await Self.floor(server, room, "ann", &clients) == "holding")
                try await server.wait("rooms/\(room)/events?limit=100") { events in
                    events["list"].list.contains { event in
                        event["kind"].string?.hasPrefix("talk.floor.") == true && event["data"]["reason"].string == reason
                    }
                }
            }
            for client in clients { await client.close() }
        }
    }

    /// How many may speak, be heard and listen.
    @Test func numbers() async throws {
        try await ReloadingServer.run { server in
            try await server.apply(["talk.always": "true", "talk.talkers": "2", "talk.listeners": "1", "talk.maxOpen": "1"])
            try await server.makeRoom("r1")
            func client(_ body: (RawClient, UInt32) async throws -> Void) async throws -> RawClient {
                let client = try await RawClient.connected(server.rtmpPort, app: "talk")
                try await body(client, try await client.createStream())
                return client
            }
            let talkers = [
                try await client { try await $0.publish("r1/ann", on: $1) }, try await client { try await $0.publish("r1/ben", on: $1) },
            ]
            try await server.wait("rooms/r1/talk") { $0["members"].count == 2 }
            #expect(try await Self.holders(server, "r1").count == 1)
            #expect(try await server.refusal(.publish, "r1/cat", app: "talk")?.contains("too_many_publishers") == true)
            let listener = try await client { try await $0.play("r1/mix", on: $1) }
            #expect(try await server.refusal(.play, "r1/mix", app: "talk")?.contains("too_many_viewers") == true)
            for client in talkers + [listener] { await client.close() }
        }
    }

    /// The mixes of channels that open later have another bit rate.
    @Test(.timeLimit(.minutes(3))) func bitRate() async throws {
        try await ReloadingServer.run(["talk.always": "true", "talk.bitRate": "128000"]) { server in
            // Noise, which cannot be told in few bits.
            let noise: @Sendable (Int) -> Float = { index in
                var random = SeededRandom(UInt64(index))
                return Float(random.next() % 20_001) / 20_000 - 0.5
            }
            /// Bytes of a message of the room's mix.
            func bytes(_ room: String) async throws -> Int {
                try await server.makeRoom(room)
                let ear = try await RawClient.connected(server.rtmpPort, app: "talk")
                try await ear.play("\(room)/mix", on: ear.createStream())
                let mouth = try await RawClient.connected(server.rtmpPort, app: "talk")
                try await mouth.publish("\(room)/ann", on: mouth.createStream())
                func sizes() -> [Int] {
                    ear.media().filter { $0.message.type == .audio }.map { $0.message.payload.readableBytes }
                }
                let begin = try await Microphone(mouth).speaking(noise) {
                    try await server.wait("rooms/\(room)/talk") { $0["members"].list.contains { $0["speaking"].bool == true } }
                    let begin = sizes().count
                    try await eventually("a second of the mix") { sizes().count > begin + 60 }
                    return begin
                }
                for client in [ear, mouth] { await client.close() }
                let heard = sizes()[begin..<(begin + 60)].sorted()
                return heard[30]
            }
            let former = try await bytes("r1")
            try await server.apply(["talk.always": "true", "talk.bitRate": "24000"])
            let new = try await bytes("r2")
            #expect(former > 2 * new, "\(former) and \(new) bytes")
        }
    }
}
