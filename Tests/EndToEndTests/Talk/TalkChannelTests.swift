import Access
import Foundation
import RTMP
import RTMPTestSupport
import Relay
import Rooms
import ServerTestSupport
import Synchronization
import Talk
import TestSupport
import Testing

@testable import EarshotServer
@testable import RoomRegistry
@testable import ServerConfiguration
@testable import Streaming
@testable import Support
@testable import Talkback

/// A channel's decisions when several things happen at once.
@Suite struct TalkChannelTests {
    /// The trail names the caller for direct effects of a call. Effects of clock and queue have no caller.
    @Test(.timeLimit(.minutes(5))) func theTrailTellsWhoCalled() async throws {
        try await TalkRoom.run({ $0.talk.settings.maxOpen = 1 }) { room in
            func floor(_ body: String) async throws { #expect(try await room.post("floor", body).status == 200) }
            func change(_ body: String) async throws { #expect(try await room.server.call("PATCH", "rooms/r1/talk", body).status == 200) }
            // All publish: in mode open, silence does not release the floor.
            let talkers = try await [room.talker("ann"), room.talker("ben"), room.talker("cat")]
            try await floor(#"{"action":"revoke","userId":"ann"}"#)
            try await floor(#"{"action":"handOver","userId":"ben","to":"cat"}"#)
            try await change(#"{"maxOpen":2}"#)
            try await floor(#"{"action":"request","userId":"ann"}"#)
            try await change(#"{"mode":"ptt"}"#)
            try await eventually("the end by the clock") { try await room.floorEvents().contains("released ann idle") }
            let lines = try await room.server.api("rooms/r1/events?limit=1000")["list"].list.filter {
                $0["kind"].string?.hasPrefix("talk.floor.") == true
            }.map { event in
                let data = event["data"]
                return "\(event["kind"].string?.dropFirst(11) ?? "") \(data["userId"].string ?? "") \(data["reason"].string ?? ""): "
                    + "\(data["by"].string ?? "-") \(data["caller"].string ?? "-")"
            }
            let token = "token:first"
            #expect(
                lines.prefix(10) == [
                    "granted ann free: - -", "revoked ann moderator: \(token) \(token)", "granted ben turn: - -",
                    "released ben handedOver: cat \(token)", "granted cat handedOver: ben \(token)", "granted ann free: \(token) \(token)",
                    "revoked ann modeChanged: \(token) \(token)", "released cat idle: - -", "granted ann turn: - -",
                    "released ann idle: - -",
                ], "\(lines)")
            for talker in talkers { await talker.close() }
        }
    }
}
