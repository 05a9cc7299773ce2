import APITestSupport
import RTMP
import RTMPTestSupport
import Rooms
import ServerTestSupport
import TestSupport
import Testing

@testable import EarshotServer
@testable import RoomRegistry
@testable import Streaming
@testable import Talkback

/// Places in a talk channel: takeovers and losses, and everything that must go on meanwhile.
@Suite struct TalkPublishSessionTests {
    /// However a voice ends, the camera on its connection goes on.
    @Test(.timeLimit(.minutes(5)), arguments: ["takeover", "drop", "again"]) func theCameraGoesOn(_ way: String) async throws {
        try await MemoryRoom.run { room in
            let device = room.camera
            let (up, more) = (try await device.createStream(), try await device.createStream())
            try await device.publish("talk/r1/dev", on: up)
            let channel = try room.server.parts.talk.find(.init(checking: "r1")).orThrow()
            func since() throws -> Int64 { try channel.snapshot.members.first { $0.userID == "dev" }.orThrow().sinceMs }
            let before = try since()
            switch way {
            case "takeover":
                let other = try await room.talker("dev")
                try await eventually("the voice's end") { device.statuses.contains { $0.description.contains("[taken_over]") } }
                #expect(try await room.member("dev")["hasFloor"].bool == true)
                #expect(try since() == before)
                await other.close()
            case "drop":
                #expect(try await room.server.call("POST", "streams/talk/r1%2Fdev/drop").status == 200)
                try await eventually("the voice's end") { try await room.talk()["members"].count == 0 }
            default:
                try await device.publish("talk/r1/dev", on: more)
                try await eventually("the first voice's end") { device.statuses.contains { $0.description.contains("[taken_over]") } }
                #expect(try since() == before)
            }
            device.send(.video, SyntheticTag.video(2, isKeyframe: true, bytes: 2_000))
            try await room.server.wait("streams/live/r1") { $0["stream"]["bytesIn"].int ?? 0 > 4_000 }
            #expect(!device.isClosed)
            #expect(try await room.server.api("rooms/r1")["state"].string == "live")
        }
    }

    /// A kick ends everything that the credential plays. The ban is stored, shown, and can be lifted.
    @Test(.timeLimit(.minutes(5))) func bansHoldAndAreLifted() async throws {
        try await MemoryRoom.run { room in
            let token = try await room.post("token", #"{"userId":"ann"}"#).json()["data"]["token"].string.orThrow()
            let ear = try await room.listener("mix?token=\(token)")
            let ann = try await room.client()
            try await ann.publish("r1/ann?token=\(token)", on: ann.createStream())
            #expect(try await room.post("members/ben/mute", #"{"gainDb":-6}"#).status == 200)
            #expect(try await room.post("members/ben/mute", #"{"muted":true}"#).status == 200)
            #expect(try await room.post("members/ben/mute", "{}").status == 400)
            let kicked = try await room.post("members/ann/kick", #"{"seconds":600}"#)
            #expect(kicked.status == 200, "\(kicked.text)")
            try await ann.waitUntilClosed()
            try await ear.waitUntilClosed()
            func isRefused() async throws -> Bool {
                let again = try await room.client()
                try await again.createStreamAndTryToPlay("r1/mix?token=\(token)")
                try await eventually("an answer") { again.isClosed || again.statuses.contains { $0.code == "NetStream.Play.Start" } }
                await again.close()
                return again.statuses.last?.description.contains("[forbidden]") == true
            }
            #expect(try await isRefused())
            // As after a restart, only the store knows the ban.
            room.server.parts.talk.stop()
            #expect(try await isRefused())
            let talk = try await room.talk()
            #expect(talk["banned"].list.map { $0["userId"].string } == ["ann"] && talk["muted"].list.map(\.string) == ["ben"])
            let ben = try await room.talker("ben")
            try await eventually("ben, muted and less loud") {
                let member = try await room.member("ben")
                return member["muted"].bool == true && member["hasFloor"].bool == false && member["gainDb"].int == -6
            }
            let allowed = try await room.post("members/ann/allow", "{}")
            #expect(allowed.status == 200, "\(allowed.text)")
            #expect(try allowed.json()["data"]["banned"].list.isEmpty)
            #expect(try await isRefused() == false)
            await ben.close()
            let events = try await room.server.api("rooms/r1/events?limit=1000")["list"].list
            let revoked = events.filter { $0["kind"].string == "talk.floor.revoked" && $0["data"]["userId"].string == "ann" }
            #expect(revoked.map { $0["data"]["by"].string } == ["token:first"], "\(revoked)")
        }
    }

    /// A kick without a duration lasts ten seconds, and never shortens an earlier ban.
    @Test(.timeLimit(.minutes(5))) func kicksHaveADefault() async throws {
        try await MemoryRoom.run { room in
            func until() async throws -> Int64? {
                try await room.server.parts.rooms.talkMembers(try .init(checking: "r1")).first { $0.user == "ann" }?.bannedUntilMs
            }
            #expect(try await room.post("members/ann/kick", "{}").status == 404)
            #expect(try await until() == nil)
            let ann = try await room.talker("ann")
            #expect(try await room.post("members/ann/kick", "{}").status == 200)
            try await ann.waitUntilClosed()
            let first = try await until().orThrow() - room.server.parts.rooms.now
            #expect((1...10_000).contains(first), "\(first)")
            let again = try await room.client()
            _ = try await again.createStream()
            try? await again.publish("r1/ann")
            try await again.waitUntilClosed()
            #expect(again.statuses.last?.description.contains("[forbidden]") == true, "\(again.statuses)")
            #expect(try await room.post("members/ann/kick", #"{"seconds":0}"#).status == 404, "there is nobody to throw out")
            #expect(try await room.post("members/ann/kick", #"{"seconds":600}"#).status == 200)
            let long = try await until().orThrow()
            #expect(try await room.post("members/ann/allow", "{}").status == 200)
            #expect(try await until() == nil && long > first)
        }
    }

    /// Concurrent calls about one participant are all kept.
    @Test(.timeLimit(.minutes(5))) func settingsAtOnce() async throws {
        try await MemoryRoom.run { room in
            for round in 0..<10 {
                async let muted = room.post("members/p\(round)/mute", #"{"muted":true}"#)
                async let banned = room.post("members/p\(round)/kick", #"{"seconds":600}"#)
                async let louder = room.post("members/p\(round)/mute", #"{"gainDb":6}"#)
                #expect(try await [muted.status, banned.status, louder.status] == [200, 200, 200])
            }
            let set = try await room.server.parts.rooms.talkMembers(try .init(checking: "r1"))
            #expect(set.count == 10 && set.allSatisfy { $0.isMuted && $0.gainDB == 6 && $0.bannedUntilMs != nil }, "\(set)")
        }
    }

    /// A mix cannot be dropped or forbidden.
    @Test(.timeLimit(.minutes(5))) func mixesAreNotDropped() async throws {
        try await MemoryRoom.run { room in
            let ear = try await room.listener("mix")
            for action in ["drop", "forbid"] {
                let answer = try await room.server.call("POST", "streams/talk/r1%2Fmix/\(action)", action == "forbid" ? "{}" : nil)
                #expect(answer.status == 409 && answer.text.contains("mute or kick"), "\(answer.text)")
            }
            let before = ear.media().count
            try await eventually("the mix to go on") { ear.media().count > before + 20 }
            await ear.close()
        }
    }

    /// A voice that cannot be decoded is counted, and logged once.
    @Test(.timeLimit(.minutes(5))) func aVoiceWithoutHeader() async throws {
        try await MemoryRoom.run { room in
            let bad = try await room.talker("bad")
            for number in 0..<50 { bad.send(.audio, SyntheticTag.audio(number, bytes: 200), timestamp: UInt32(number * 20)) }
            try await eventually("its frames to be counted") { try await room.member("bad")["damagedFrames"].int == 50 }
            #expect(await room.server.lines.comes("A voice cannot be decoded", "participant=bad", "no sequence header"))
            await bad.close()
        }
    }

    /// The reasons why a hand-over fails.
    @Test(.timeLimit(.minutes(5))) func handOversThatFail() async throws {
        try await MemoryRoom.run(TalkFloorTests.unhurried) { room in
            func handOver(_ from: String, _ to: String) async throws -> String {
                let answer = try await room.post("floor", #"{"action":"handOver","userId":"\#(from)","to":"\#(to)"}"#)
                return "\(answer.status) \(try answer.json()["message"].string ?? "")"
            }
            let muted = try await room.post("members/mut/mute", #"{"muted":true}"#)
            #expect(muted.status == 200, "\(muted.text)")
            let ann = try await room.talker("ann")
            try await eventually("ann's floor") { try await room.talk()["holders"].list.map(\.string) == ["ann"] }
            #expect(try await handOver("ann", "mut") == "409 mut is muted and cannot get the floor.")
            #expect(try await handOver("ann", "ann") == "409 ann has the floor already.")
            #expect(try await handOver("ben", "cat") == "409 ben does not have the floor to hand it over.")
            #expect(
                try await handOver("ann", "cat") == "409 cat does not publish to the room's talk channel now and cannot get the floor.")
            await ann.close()
        }
    }

    /// A talker that begins again and again does not fill the audit trail. All on one connection, so that even a busy machine does it in time.
    @Test(.timeLimit(.minutes(5))) func whoBeginsAgainAndAgainIsRefused() async throws {
        try await MemoryRoom.run { room in
            let client = try await room.client()
            func wasRefused() -> Bool { client.statuses.last?.description.contains("[flapping]") == true }
            for turn in 1...40 where !wasRefused() {
                let stream = try await client.createStream()
                try await client.run { $0.publish("r1/ann", on: stream) }
                try await eventually("an answer") {
                    client.isClosed || wasRefused() || client.statuses.count(where: { $0.code == "NetStream.Publish.Start" }) == turn
                }
                if !client.isClosed { try await client.run { $0.deleteStream(stream) } }
            }
            #expect(wasRefused())
            #expect(try await room.floorEvents().count <= 70)
            await client.close()
        }
    }
}
