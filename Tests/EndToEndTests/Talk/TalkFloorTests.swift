import EarshotServer
import Foundation
import NIOCore
import RTMP
import Rooms
import ServerConfiguration
import ServerTestSupport
import SignalCheck
import TestSupport
import Testing

@testable import Delivery
@testable import RoomStore

/// The floor by publishing and by call, and its audit trail.
@Suite struct TalkFloorTests {
    /// Push to talk with limits so long that a slow machine costs nobody the floor.
    static let unhurried: @Sendable (inout ServerConfig) -> Void = {
        $0.talk.settings.mode = .ptt
        $0.talk.settings.maxHoldMs = 600_000
        $0.talk.idleMs = 60_000
    }

    /// Push to talk with unaware clients: publish requests the floor, unpublish releases it. The second talker is muted, not disconnected.
    @Test(.timeLimit(.minutes(5))) func publishingAsksForTheFloor() async throws {
        try await TalkRoom.run(Self.unhurried) { room in
            let ear = try await room.listener("mix")
            let ann = try await room.talker("ann")
            try await Microphone(ann).speaking(Tone.sine(500)) {
                try await eventually("ann to have the floor") { try await room.talk()["holders"].list.map(\.string) == ["ann"] }
                let ben = try await room.talker("ben")
                try await Microphone(ben).speaking(Tone.sine(1_200)) {
                    try await eventually("ben to wait, unheard") {
                        let member = try await room.member("ben")
                        return member["hasFloor"].bool == false && member["mutedFrames"].int ?? 0 > 10
                    }
                    #expect(try await room.talk()["waiting"].list.map(\.string) == ["ben"])
                    try await eventually("two seconds of ann") { try Heard(ear).voiced(500).count { $0 } >= 20 }
                    await ann.close()
                    try await eventually("ben's turn") { try await room.talk()["holders"].list.map(\.string) == ["ben"] }
                    try await eventually("ben to be heard") { try await room.member("ben")["speaking"].bool == true }
                    try await eventually("two seconds of ben") { try Heard(ear).voiced(1_200).count { $0 } >= 20 }
                    await ben.close()
                }
            }
            let heard = try Heard(ear).samples
            // While ann spoke nothing of ben was in the mix, and vice versa.
            let windows = stride(from: 0, to: heard.count - 4_800, by: 4_800).map { Array(heard[$0..<($0 + 4_800)]) }
            let both = windows.indices.filter {
                Signal.level(windows[$0], frequency: 500) > -40 && Signal.level(windows[$0], frequency: 1_200) > -40
            }
            // The floor passes once, within a tenth of a second or at the border of two.
            #expect(both.count <= 2 && (both.last ?? 0) - (both.first ?? 0) <= 1, "\(both) of \(windows.count)")
            try await eventually("the last release") { try await room.floorEvents().last == "released ben unpublished" }
            #expect(
                try await room.floorEvents() == [
                    "granted ann free", "released ann unpublished", "granted ben turn", "released ben unpublished",
                ])
            let held = try await room.server.api("rooms/r1/events?limit=1000")["list"].list.filter {
                $0["kind"].string == "talk.floor.released"
            }.compactMap { $0["data"]["heldMs"].int }
            #expect(held.count == 2 && held.allSatisfy { $0 > 1_500 }, "\(held)")
            await ear.close()
        }
    }

    /// Request, queue, hand-over and revocation by call. Impossible requests get a message.
    @Test(.timeLimit(.minutes(5))) func theFloorByCall() async throws {
        try await TalkRoom.run(Self.unhurried) { room in
            func floor(_ body: String) async throws -> HTTPAnswer { try await room.post("floor", body) }
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
        }
    }

    /// A holder that sends nothing loses the floor after two seconds.
    @Test(.timeLimit(.minutes(5))) func silenceGivesTheFloorBack() async throws {
        try await TalkRoom.run({ $0.talk.settings.mode = .ptt }) { room in
            #expect(try await room.post("floor", #"{"action":"request","userId":"dan"}"#).status == 200)
            try await eventually("dan's silence to count") { try await room.floorEvents() == ["granted dan free", "released dan idle"] }
            let held = try await room.server.api("rooms/r1/events?limit=1000")["list"].list.compactMap { $0["data"]["heldMs"].int }
            #expect(held.count == 1 && held.allSatisfy { $0 >= 2_000 }, "\(held)")
        }
    }

    /// A talker that lost the floor for lack of packets requests it again by sending: a stock client cannot do otherwise.
    @Test(.timeLimit(.minutes(5))) func speakingAgainAsksAgain() async throws {
        try await TalkRoom.run({ $0.talk.settings.mode = .ptt }) { room in
            let ear = try await room.listener("mix")
            let ann = try await room.talker("ann")
            try await Microphone(ann).speak(seconds: 0.5, Tone.sine(500))
            try await eventually("ann's silence to count") { try await room.floorEvents().last == "released ann idle" }
            #expect(try await room.talk()["holders"].list.isEmpty)
            try await Microphone(ann).speaking(Tone.sine(900)) {
                try await eventually("ann to be heard again") { try Heard(ear).voiced(900).count { $0 } >= 5 }
                #expect(try await room.floorEvents() == ["granted ann free", "released ann idle", "granted ann free"])
            }
            for client in [ann, ear] { await client.close() }
        }
    }

    /// A kick does not lift a mute.
    @Test(.timeLimit(.minutes(5))) func aKickKeepsTheMute() async throws {
        try await TalkRoom.run { room in
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

    /// A speaker hears the others 18 dB lower while it speaks; a listener hears them in full.
    @Test(.timeLimit(.minutes(5))) func speakersAreDucked() async throws {
        try await TalkRoom.run { room in
            let changed = try await room.server.call("PATCH", "rooms/r1/talk", #"{"ducks":true}"#)
            #expect(changed.status == 200, "\(changed.text)")
            let ears = try await [room.listener("mix-ben"), room.listener("mix-cat")]
            let ann = try await room.talker("ann")
            func level(_ ear: RawClient) throws -> Double {
                let levels = try Tone.levels(Heard(ear, newest: 40).last(0.5), 500)
                return levels.isEmpty ? -200 : levels[levels.count / 2]
            }
            let full = -12.0
            try await Microphone(ann).speaking(Tone.sine(500)) {
                try await eventually("ann, in full") { try abs(level(ears[0]) - full) < 1 }
                let ben = try await room.talker("ben")
                try await Microphone(ben).speaking(Tone.sine(1_200)) {
                    try await eventually("ann to be ducked for ben") { try abs(level(ears[0]) - (full - 18)) < 1 }
                    try await eventually("ann in full for who does not speak") { try abs(level(ears[1]) - full) < 1 }
                }
                try await eventually("ann in full again") { try abs(level(ears[0]) - full) < 1 }
                await ben.close()
            }
            for client in ears + [ann] { await client.close() }
        }
    }

    /// Rules are stored with the room, and can change while people talk.
    @Test(.timeLimit(.minutes(5))) func rulesChange() async throws {
        try await TalkRoom.run { room in
            let clients = try await [room.talker("ann"), room.talker("ben")]
            try await eventually("two open microphones") { try await room.talk()["holders"].count == 2 }
            let changed = try await room.server.call("PATCH", "rooms/r1/talk", #"{"mode":"ptt","maxHold":5,"talkers":3}"#)
            #expect(changed.status == 200, "\(changed.text)")
            let talk = try await room.talk()
            #expect(talk["mode"].string == "ptt" && talk["maxHold"].int == 5 && talk["talkers"].int == 3 && talk["holders"].count <= 1)
            #expect(try await room.server.call("PATCH", "rooms/r1/talk", #"{"talkers":0}"#).status == 400)
            #expect(try await room.server.call("PATCH", "rooms/r1/talk", #"{"mode":"shout"}"#).status == 400)
            #expect(try await room.server.server.parts.rooms.talkSettings(try .init(checking: "r1"))?.mode == .ptt)
            for client in clients { await client.close() }
        }
    }

    /// A muted talker is not heard. A kicked one is gone and stays out. The rest of their connection goes on.
    @Test(.timeLimit(.minutes(5))) func muteAndKick() async throws {
        try await TalkRoom.run { room in
            let ear = try await room.listener("mix")
            let ann = try await room.talker("ann")
            try await Microphone(ann).speaking(Tone.sine(500)) {
                try await eventually("ann's voice") { try await room.member("ann")["speaking"].bool == true }
                #expect(try await room.post("members/ann/mute", #"{"muted":true}"#).status == 200)
                try await eventually("silence") { try Heard(ear, newest: 30).last(0.3).allSatisfy { $0 == 0 } }
                #expect(try await room.member("ann")["muted"].bool == true)
                #expect(try await room.post("members/ann/mute", #"{"muted":false,"gainDb":6}"#).status == 200)
                try await eventually("ann, louder") { try Heard(ear, newest: 30).levels(of: 500).last ?? -100 > -9 }
                #expect(try await room.post("members/ann/kick", #"{"seconds":60}"#).status == 200)
                try await ann.waitUntilClosed()
            }
            #expect(ann.statuses.last?.description.contains("[kicked]") == true, "\(ann.statuses)")
            let again = try await room.client()
            try await again.createStreamAndTryToPublish("r1/ann")
            try await again.waitUntilClosed()
            #expect(again.statuses.last?.description.contains("[forbidden]") == true, "\(again.statuses)")
            #expect(try await room.post("members/nobody/kick", "{}").status == 404)
            await ear.close()
        }
    }
}

extension RawClient {
    /// Does not wait for acceptance.
    func createStreamAndTryToPublish(_ name: String) async throws {
        let streamID = try await self.createStream()
        try await self.perform { $0.publish(name, on: streamID) }
    }

    func createStreamAndTryToPlay(_ name: String) async throws {
        let streamID = try await self.createStream()
        try await self.perform { $0.play(name, on: streamID) }
    }
}
