import EarshotServer
import Foundation
import RTMPTestSupport
import Rooms
import ServerTestSupport
import TestSupport
import Testing

@testable import ServerConfiguration
@testable import Support

/// The steps of a new user: a room by the API, a push with its URL, the list, a ban, and another push.
/// Everybody needs a credential here, this machine too.
@Suite struct WalkClientsTests {
    @Test func aRoomFromCreationToItsSecondPush() async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 20)
        try await TestServer.run({ config in
            config.access.publishFrom = []
            config.access.playFrom = []
            config.rooms.policy.cleanStopMs = 500
        }) { server in
            let created = try await server.call("POST", "rooms", #"{"roomId":"walk","title":"A walk","owner":"ada"}"#)
            #expect(created.status == 201, "\(created.text)")
            let push = try await server.pushURL("walk")

            try await ClientProcess.during(FFmpeg.pushForEver(source, to: push)) { ffmpeg in
                try await server.wait("rooms?state=live") { $0["total"].int == 1 }
                let room = try await server.api("rooms?state=live")["list"][0]
                #expect(room["roomId"].string == "walk" && room["liveStatus"].int == 1 && room["owner"].string == "ada")
                #expect(try await server.api("streams/live/walk")["state"].string == "active")

                // Playing needs a credential too; one for pushing does not open others' streams.
                let bare = try await ClientProcess.run(Probe.packets("\(server.rtmp)/live/walk"))
                #expect(bare.status != 0 && bare.errors.contains("credential"), "\(bare.errors)")

                let forbidden = try await server.call("POST", "streams/live/walk/forbid", #"{"reason":"dirty lens"}"#)
                #expect(forbidden.status == 200, "\(forbidden.text)")
                let outcome = try await ffmpeg.outcome()
                #expect(outcome.status != 0, "the push is cut")
            }
            #expect(try await server.api("rooms/walk")["liveStatus"].int == 2)
            #expect(try await server.api("streams/live/walk")["state"].string == "forbid")
            let refused = try await ClientProcess.run(FFmpeg.push(source, to: push))
            #expect(refused.status != 0 && refused.errors.contains("dirty lens"), "\(refused.errors)")
            #expect(await server.lines.comes("reason=forbidden", "dirty lens"))

            #expect(try await server.call("POST", "streams/live/walk/resume").status == 200)
            #expect(try await server.api("rooms/walk")["state"].string == "created")
            try await ClientProcess.during(FFmpeg.pushForEver(source, to: push)) { _ in
                try await server.wait("rooms/walk") { $0["state"].string == "live" }
            }
            let kinds = try await server.api("rooms/walk/events?after=0")["list"].list.compactMap { $0["kind"].string }
            #expect(
                kinds.filter { $0.hasPrefix("room.") }.prefix(5) == [
                    "room.created", "room.live", "room.forbidden", "room.unforbidden", "room.live",
                ], "\(kinds)")
            // The parameter's name may stand in a closed session's trace, its value nowhere.
            #expect(await server.lines.comes("txSecret=***"), "the trace tells that there was one")
            let secret = try #require(URLComponents(string: push)?.queryItems?.first { $0.name == "txSecret" }?.value)
            #expect(secret.count == 32 && server.lines.all.filter { $0.contains(secret) }.isEmpty, "no signature in the log")
        }
    }

    /// Checked only when the push begins: an expired URL does not cut a running push.
    @Test func aURLThatExpiresDoesNotCut() async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 20)
        try await TestServer.run({ $0.access.publishFrom = [] }) { server in
            #expect(try await server.call("POST", "rooms", #"{"roomId":"short"}"#).status == 201)
            for scheme in ["txSecret", "jwt"] {
                let push = try await server.pushURL("short", #"{"lifetime":15,"scheme":"\#(scheme)"}"#)
                let expired = Date(timeIntervalSinceNow: 16.1)
                try await ClientProcess.during(FFmpeg.pushForEver(source, to: push)) { ffmpeg in
                    try await server.wait("rooms/short") { $0["state"].string == "live" }
                    let before = try await server.api("streams/live/short")["stream"]["bytesIn"].int
                    // Another push with the same URL is refused once it has expired.
                    try await eventually("the URL to run out") { Date() > expired }
                    let late = try await ClientProcess.run(FFmpeg.push(source, to: push))
                    #expect(late.status != 0 && late.errors.contains("expired"), "\(late.errors)")
                    #expect(ffmpeg.isRunning)
                    try await server.wait("streams/live/short") { ($0["stream"]["bytesIn"].int ?? 0) > (before ?? 0) }
                }
                try await server.wait("rooms/short") { $0["state"].string == "interrupted" }
            }
            try await eventually("the counter") { server.closed(.credentialExpired) >= 2 }
        }
    }
}

extension TestServer {
    /// The room's signed RTMP URL.
    func pushURL(_ room: String, _ body: String = "{}") async throws -> String {
        let answer = try await self.call("POST", "rooms/\(room)/push-url", body)
        return try answer.json()["data"]["rtmp"].string.orThrow()
    }
}
