import APITestSupport
import EarshotServer
import RTMP
import RTMPTestSupport
import Rooms
import ServerConfiguration
import ServerTestSupport
import TestSupport
import Testing

@testable import RoomRegistry
@testable import Streaming

/// The floor by publishing and by call, and its audit trail.
@Suite struct TalkFloorTests {
    /// Push to talk with limits so long that a slow machine costs nobody the floor.
    static let unhurried: @Sendable (inout ServerConfig) -> Void = {
        $0.talk.settings.mode = .ptt
        $0.talk.settings.maxHoldMs = 600_000
        $0.talk.idleMs = 60_000
    }

    /// Request, queue, hand-over and revocation by call. Impossible requests get a message.
    @Test(.timeLimit(.minutes(5))) func theFloorByCall() async throws {
        try await MemoryRoom.run(Self.unhurried) { room in
            func floor(_ body: String) async throws -> HTTPAnswer { try await room.post("floor", body) }
            var clients: [RawClient] = []
            for (name, position) in [("ann", 0), ("ben", 1), ("cat", 2)] {
                clients.append(try await room.talker(name))
                try await eventually("\(name)'s request") { try await room.talk()["waiting"].count == position }
            }
            try await eventually("ann's floor") { try await room.talk()["holders"].list.map(\.string) == ["ann"] }
            #expect(try await floor(#"{"action":"request","userId":"ann"}"#).json()["data"]["state"].string == "holding")
            let waiting = try await floor(#"{"action":"request","userId":"ben"}"#).json()["data"]
            #expect(waiting["state"].string == "waiting" && waiting["position"].int == 1)
            // A host goes before a guest who came first.
            #expect(try await floor(#"{"action":"request","userId":"cat","role":"host"}"#).json()["data"]["position"].int == 1)
            let given = try await floor(#"{"action":"handOver","userId":"ann","to":"ben"}"#).json()["data"]
            #expect(given["userId"].string == "ben" && given["state"].string == "holding")
            #expect(try await floor(#"{"action":"handOver","userId":"ann","to":"cat"}"#).status == 409)
            #expect(try await floor(#"{"action":"revoke","userId":"ben"}"#).status == 200)
            try await eventually("cat's turn") { try await room.talk()["holders"].list.map(\.string) == ["cat"] }
            #expect(try await floor(#"{"action":"release","userId":"cat"}"#).json()["data"]["state"].string == "none")
            // Events are stored after the call is answered.
            try await eventually("the last event") { try await room.floorEvents().last?.hasPrefix("released cat") == true }
            let events = try await room.floorEvents()
            #expect(
                events == [
                    "granted ann free", "released ann handedOver", "granted ben handedOver", "denied cat notHolding",
                    "revoked ben moderator", "granted cat turn",
                    "released cat asked",
                ], "\(events)")
            // Invalid requests.
            #expect(try await floor(#"{"action":"handOver","userId":"ann"}"#).status == 400)
            #expect(try await floor(#"{"action":"request","userId":"mix"}"#).status == 400)
            #expect(try await room.server.call("POST", "rooms/none/talk/floor", #"{"action":"request","userId":"a"}"#).status == 404)
            for client in clients { await client.close() }
        }
    }

    /// One who only listens, or is not there, gets the floor neither by request nor from a holder, and learns why.
    @Test(.timeLimit(.minutes(5))) func whoDoesNotPublishGetsNoFloor() async throws {
        try await MemoryRoom.run(Self.unhurried) { room in
            let clients = try await [room.talker("ann"), room.listener("mix-lea")]
            try await eventually("ann's floor") { try await room.talk()["holders"].list.map(\.string) == ["ann"] }
            for name in ["lea", "zoe"] {
                for body in [
                    "{\"action\":\"request\",\"userId\":\"\(name)\",\"role\":\"host\"}",
                    "{\"action\":\"handOver\",\"userId\":\"ann\",\"to\":\"\(name)\"}",
                ] {
                    let refused = try await room.post("floor", body)
                    #expect(refused.status == 409 && refused.text.contains("\(name) does not publish"), "\(refused.text)")
                }
            }
            let talk = try await room.talk()
            #expect(talk["holders"].list.map(\.string) == ["ann"] && talk["waiting"].list.isEmpty)
            try await eventually("the trail") {
                try await room.floorEvents() == ["granted ann free"] + ["lea", "lea", "zoe", "zoe"].map { "denied \($0) notPublishing" }
            }
            for client in clients { await client.close() }
        }
    }

    /// A kick does not lift a mute.
    @Test(.timeLimit(.minutes(5))) func aKickKeepsTheMute() async throws {
        try await MemoryRoom.run { room in
            let ann = try await room.talker("ann")
            #expect(try await room.post("members/ann/mute", #"{"muted":true}"#).status == 200)
            #expect(try await room.post("members/ann/kick", #"{"seconds":0}"#).status == 200)
            try await ann.waitUntilClosed()
            let again = try await room.talker("ann")
            try await eventually("ann, muted") { try await room.member("ann")["muted"].bool == true }
            #expect(try await room.talk()["holders"].list.isEmpty)
            #expect(try await room.post("floor", #"{"action":"request","userId":"ann"}"#).status == 409)
            #expect(try await room.post("members/ann/mute", #"{"muted":false}"#).status == 200)
            try await eventually("the floor") { try await room.talk()["holders"].list.map(\.string) == ["ann"] }
            await again.close()
        }
    }

    /// Rules are stored with the room, and can change while people talk.
    @Test(.timeLimit(.minutes(5))) func rulesChange() async throws {
        try await MemoryRoom.run { room in
            let clients = try await [room.talker("ann"), room.talker("ben")]
            try await eventually("two open microphones") { try await room.talk()["holders"].count == 2 }
            let changed = try await room.server.call("PATCH", "rooms/r1/talk", #"{"mode":"ptt","maxHold":5,"talkers":3}"#)
            #expect(changed.status == 200, "\(changed.text)")
            let talk = try await room.talk()
            #expect(talk["mode"].string == "ptt" && talk["maxHold"].int == 5 && talk["talkers"].int == 3 && talk["holders"].count <= 1)
            #expect(try await room.server.call("PATCH", "rooms/r1/talk", #"{"talkers":0}"#).status == 400)
            #expect(try await room.server.call("PATCH", "rooms/r1/talk", #"{"mode":"shout"}"#).status == 400)
            #expect(try await room.server.parts.rooms.talkSettings(try .init(checking: "r1"))?.mode == .ptt)
            for client in clients { await client.close() }
        }
    }
}
