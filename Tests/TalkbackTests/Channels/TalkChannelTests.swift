import APITestSupport
import RTMP
import RTMPTestSupport
import Rooms
import ServerTestSupport
import Talk
import TestSupport
import Testing

@testable import Access
@testable import EarshotServer
@testable import RoomRegistry
@testable import ServerConfiguration
@testable import Streaming
@testable import Support
@testable import Talkback

/// A channel's decisions when several things happen at once.
@Suite struct TalkChannelTests {
    private static func channel(_ room: MemoryRoom) async throws -> TalkChannel {
        let parts = room.server.parts
        return try await parts.talk.channel(of: parts.rooms.room("r1"))
    }

    private static func pass(_ identity: String, user: String? = nil) -> AdmissionPass {
        AdmissionPass(identity: identity, user: user, isVerified: true, parameters: "")
    }

    /// A member kicked while its stream is being claimed is not heard afterwards. A kick also ends a voice that another is taking over.
    @Test(.timeLimit(.minutes(5))) func aKickFindsWhoIsComing() async throws {
        try await MemoryRoom.run { room in
            let channel = try await Self.channel(room)
            let (ben, device) = (try ParticipantID("ben"), try ParticipantID("device"))
            for (name, id) in [("ben", ben), ("device", device)] {
                // By its name, and by its credential's user.
                let talker = try channel.admitTalker(id, Self.pass("phone", user: "ben"), role: .guest)
                #expect(try await room.post("members/ben/kick", #"{"seconds":0}"#).status == 200)
                channel.began(talker)
                let talk = try await room.talk()
                #expect(talk["holders"].list.isEmpty && talk["members"].list.map { $0["userId"].string } == [name])
                talker.ended(.connectionLost)
                #expect(try await room.talk()["members"].list.isEmpty)
                #expect(try await room.post("members/ben/kick", "{}").status == 404)
            }
            let ann = try await room.talker("ann")
            let next = try channel.admitTalker(
                ParticipantID("ann"), AdmissionPass(identity: "address 127.0.0.1", user: nil, isVerified: false, parameters: ""),
                role: .host)
            #expect(try await room.member("ann")["role"].string == "guest")
            #expect(try await room.post("members/ann/kick", "{}").status == 200)
            try await ann.waitUntilClosed()
            channel.began(next)
            #expect(try await room.talk()["holders"].list.isEmpty)
            next.ended(.connectionLost)
            try await eventually("nobody") { try await room.talk()["members"].list.isEmpty }
            try await eventually("the trail") { try await room.floorEvents() == ["granted ann free", "revoked ann kicked"] }
        }
    }

    /// The channel ends with the store's last state, however calls cross.
    @Test(.timeLimit(.minutes(5))) func callsAtOnceEndInOneOrder() async throws {
        try await MemoryRoom.run { room in
            let ann = try await room.talker("ann")
            let channel = try await Self.channel(room)
            let rooms = room.server.parts.rooms
            let id = try RoomID(checking: "r1")
            for round in 0..<30 {
                try await withThrowingTaskGroup(of: Int.self) { group in
                    for number in 0..<12 {
                        let calls = [
                            ("members/ann/mute", "{\"muted\":\(number % 4 == 0)}"), ("members/ann/mute", "{\"gainDb\":\(number)}"),
                        ]
                        let (path, body) = calls[number % 2]
                        group.addTask { try await room.post(path, body).status }
                    }
                    for try await status in group { #expect(status == 200) }
                }
                let set = try await rooms.talkMembers(id).first { $0.user == "ann" } ?? TalkMemberSetting(user: "ann")
                let shown = try channel.snapshot.members.first.orThrow()
                #expect(shown.isMuted == set.isMuted && abs(shown.gainDB - set.gainDB) < 0.01, "round \(round): \(set)")
            }
            await ann.close()
        }
    }

    /// Concurrent changes of rules are all kept, by the store and by the channel.
    @Test(.timeLimit(.minutes(5))) func rulesChangedAtOnce() async throws {
        try await MemoryRoom.run { room in
            let channel = try await Self.channel(room)
            for round in 0..<10 {
                let changes = [
                    "\"talkers\":\(3 + round)", "\"listeners\":\(20 + round)", "\"maxOpen\":\(2 + round)", "\"maxHold\":\(5 + round)",
                    "\"preempts\":\(round % 2 == 0)", "\"ducks\":\(round % 2 == 1)",
                ]
                try await withThrowingTaskGroup(of: Int.self) { group in
                    for change in changes {
                        group.addTask { try await room.server.call("PATCH", "rooms/r1/talk", "{\(change)}").status }
                    }
                    for try await status in group { #expect(status == 200) }
                }
                var expected = TalkSettings()
                (expected.talkers, expected.listeners, expected.maxOpen) = (3 + round, 20 + round, 2 + round)
                (expected.maxHoldMs, expected.preempts, expected.ducks) = (Int64(5 + round) * 1_000, round % 2 == 0, round % 2 == 1)
                #expect(try await room.server.parts.rooms.talkSettings(.init(checking: "r1")) == expected)
                #expect(channel.settings == expected)
            }
        }
    }

    /// A new channel reads the store twice. Changes in between are not lost, including lifted mutes.
    @Test(.timeLimit(.minutes(5))) func whatWasLiftedWhileItBegan() async throws {
        try await MemoryRoom.run { room in
            let channel = try await Self.channel(room)
            var (ann, ben, cat) = (TalkMemberSetting(user: "ann"), TalkMemberSetting(user: "ben"), TalkMemberSetting(user: "cat"))
            (ann.isMuted, ben.isMuted, cat.isMuted) = (true, true, true)
            channel.set([ann, ben])
            channel.set([ben, cat], instead: [ann, ben])
            for (name, isMuted) in [("ann", false), ("ben", true), ("cat", true)] {
                let id = try ParticipantID(name)
                let asked = try channel.floor(.requested(id, .guest), of: id, by: .server).orThrow()
                #expect(asked.events.contains { $0.kind == .denied && $0.reason == .muted } == isMuted, "\(name)")
            }
        }
    }

    /// A banned member gets the floor neither by request nor by hand-over. In a closed channel nobody gets it.
    @Test(.timeLimit(.minutes(5))) func bannedOnesGetNoFloor() async throws {
        try await MemoryRoom.run { room in
            let talker = try await room.talker("ann")
            #expect(try await room.post("members/eve/kick", #"{"seconds":600}"#).status == 200)
            let asked = try await room.post("floor", #"{"action":"request","userId":"eve"}"#)
            #expect(asked.status == 409 && asked.text.contains("banned"), "\(asked.text)")
            let given = try await room.post("floor", #"{"action":"handOver","userId":"ann","to":"eve"}"#)
            #expect(given.status == 409 && given.text.contains("eve was kicked and cannot get the floor"), "\(given.text)")
            #expect(try await room.talk()["holders"].list.map(\.string) == ["ann"])
            #expect(try await room.post("members/eve/allow", "{}").status == 200)
            let eve = try await room.talker("eve")
            try await eventually("eve's floor") { try await room.talk()["holders"].count == 2 }
            let trail = ["granted ann free", "denied eve banned", "denied eve banned", "granted eve free"]
            try await eventually("the trail") { try await Array(room.floorEvents().prefix(4)) == trail }
            for client in [talker, eve] { await client.close() }
            let channel = try await Self.channel(room)
            channel.close(.roomEnded)
            let ann = try ParticipantID("ann")
            #expect(channel.floor(.requested(ann, .host), of: ann, by: .server) == nil)
            #expect(channel.snapshot.holders.isEmpty)
        }
    }

    /// Mutes that are dropped because there are too many silence nobody.
    @Test(.timeLimit(.minutes(5))) func forgottenMutesAreForgottenByTheFloor() async throws {
        try await MemoryRoom.run { room in
            let channel = try await Self.channel(room)
            for number in 0..<1_200 {
                var setting = TalkMemberSetting(user: "p\(number)")
                setting.isMuted = true
                channel.set(setting, of: try ParticipantID(setting.user), by: nil)
            }
            for (name, isMuted) in [("p0", false), ("p600", false), ("p1199", true)] {
                let id = try ParticipantID(name)
                let asked = try channel.floor(.requested(id, .guest), of: id, by: .server).orThrow()
                #expect(asked.events.contains { $0.kind == .denied && $0.reason == .muted } == isMuted, "\(name): \(asked.events)")
            }
        }
    }
}
