import Foundation
import RTMP
import RTMPTestSupport
import Rooms
import ServerTestSupport
import SignalCheck
import TestSupport
import Testing

@testable import EarshotServer
@testable import RoomRegistry
@testable import Streaming
@testable import Talkback

/// Places in a talk channel: takeovers and losses, and everything that must go on meanwhile.
@Suite struct TalkPublishSessionTests {
    /// A phone that reconnects while it speaks keeps the floor; another credential does not get its place.
    @Test(.timeLimit(.minutes(5))) func aTakeoverKeepsTheFloor() async throws {
        try await TalkRoom.run(TalkFloorTests.unhurried) { room in
            let ear = try await room.listener("mix")
            let before = try await room.talker("ann")
            let (ben, ann) = try await Microphone(before).speaking(Tone.sine(500)) {
                try await eventually("ann to have the floor") { try await room.talk()["holders"].list.map(\.string) == ["ann"] }
                let (ben, ann) = (try await room.talker("ben"), try await room.talker("ann"))
                try await before.waitUntilClosed()
                return (ben, ann)
            }
            try await Microphone(ann).speaking(Tone.sine(900)) {
                try await eventually("ann on her new connection") { try Heard(ear).voiced(900).count { $0 } >= 5 }
            }
            await ear.close()
            #expect(try await room.talk()["holders"].list.map(\.string) == ["ann"])
            #expect(try await room.floorEvents() == ["granted ann free"])
            let eve = try await room.client()
            try await eve.createStreamAndTryToPublish("r1/ann?user=eve")
            try await eve.waitUntilClosed()
            #expect(eve.statuses.last?.description.contains("[name_taken]") == true, "\(eve.statuses)")
            await ann.close()
            try await eventually("ben's turn") { try await room.talk()["holders"].list.map(\.string) == ["ben"] }
            await ben.close()
        }
    }

    /// A mix without listeners ends while others go on. A listener that returns hears it again.
    @Test(.timeLimit(.minutes(5))) func mixesEndWithTheirListeners() async throws {
        try await TalkRoom.run { room in
            let ear = try await room.listener("mix")
            for index in 0..<30 {
                let passing = try await room.listener("mix-p\(index)")
                await passing.close()
            }
            let mixes: @Sendable () async throws -> [String] = {
                try await room.server.api("streams?limit=100")["list"].list.compactMap { $0["name"].string }.filter {
                    $0.hasPrefix("r1/mix")
                }
            }
            try await eventually("one mix") { try await mixes() == ["r1/mix"] }
            // Also at the moment at which it ends.
            for pause in [0, 900, 1_000, 1_050, 1_100] {
                let back = try await room.listener("mix-p0")
                try await eventually("sound") { back.media().count > 5 }
                await back.close()
                // Not a wait: varies the moment of the return within the mix's end.
                try await Task.sleep(for: .milliseconds(pause))
            }
            let before = ear.media().count
            try await eventually("the others' mix to go on") { ear.media().count > before + 20 }
            try room.expectEven(ear)
            await ear.close()
            try await eventually("no mix") { try await mixes().isEmpty }
            try await eventually("a self-check that is right") { try await room.server.api("selfcheck")["ok"].bool == true }
        }
    }
}
