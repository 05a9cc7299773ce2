import EarshotServer
import Foundation
import NIOCore
import RTMP
import RTMPTestSupport
import Rooms
import ServerConfiguration
import ServerTestSupport
import SignalCheck
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

    /// A holder that sends nothing loses the floor after two seconds.
    @Test(.timeLimit(.minutes(5))) func silenceGivesTheFloorBack() async throws {
        try await TalkRoom.run({ $0.talk.settings.mode = .ptt }) { room in
            let dan = try await room.talker("dan")
            try await eventually("dan's silence to count") { try await room.floorEvents() == ["granted dan free", "released dan idle"] }
            let held = try await room.server.api("rooms/r1/events?limit=1000")["list"].list.compactMap { $0["data"]["heldMs"].int }
            #expect(held.count == 1 && held.allSatisfy { $0 >= 2_000 }, "\(held)")
            await dan.close()
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
