import APITestSupport
import Access
import Foundation
import NIOCore
import RTMP
import RTMPTestSupport
import Relay
import Rooms
import ServerTestSupport
import TestSupport
import Testing

@testable import ControlAPI
@testable import EarshotServer
@testable import Listening
@testable import Notifications
@testable import RoomRegistry
@testable import Streaming
@testable import Support

/// Streams through the API, with real publishers.
@Suite struct APIStreamTests {
    @Test func aPushIsDroppedForbiddenAndResumed() async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 30)
        try await TestServer.run { server in
            let api = try await CheckedAPI(server)
            try await api.ok("POST", "rooms", #"{"roomId":"cam1"}"#, status: 201)
            let idle = try await api.ok("GET", "streams/live/cam1")
            #expect(idle["state"].string == "inactive")
            #expect(idle["roomId"].string == "cam1")
            #expect(idle["stream"].isNull && idle["forbid"].isNull)
            #expect(try await api.ok("GET", "streams/live/nobody")["roomId"].isNull)
            #expect(try await api.ok("POST", "streams/live/cam1/drop")["wasDropped"].bool == false)

            let url = "\(server.rtmp)/live/cam1"
            let viewer = try await TagClient.play(from: server, "live/cam1")
            let first = try ClientProcess(FFmpeg.pushForEver(source, to: url))
            defer { first.send(SIGKILL) }
            try await server.wait("rooms/cam1") { $0["state"].string == "live" }
            let room = try await api.ok("GET", "rooms/cam1")
            #expect(room["liveStatus"].int == 1)
            #expect(room["online"].int == 1)
            #expect(room["streams"][0]["isActive"].bool == true)
            #expect(room["streams"][0]["viewers"].int == 1)
            #expect(room["since"].string == room["liveSince"].string)
            let active = try await api.ok("GET", "streams/live/cam1")
            #expect(active["state"].string == "active")
            #expect(active["stream"]["roomId"].string == "cam1")
            #expect(active["stream"]["publisher"]["address"].string?.hasPrefix("127.0.0.1:") == true)
            #expect(try await api.ok("GET", "streams?state=live&app=live")["total"].int == 1)
            #expect(try await api.ok("GET", "streams?app=other")["total"].int == 0)
            let pushes = try await api.ok("GET", "streams/published?app=live&name=cam1")["list"]
            #expect(pushes.count == 1)
            #expect(pushes[0]["endedAt"].isNull && pushes[0]["stopReason"].isNull)
            #expect(pushes[0]["sequence"].int == room["streams"][0]["sequence"].int)
            try await server.wait("streams/live/cam1/stats") { $0["list"].count >= 2 }
            let stats = try await api.ok("GET", "streams/live/cam1/stats?seconds=1")
            #expect(stats["list"].count == 1)
            #expect(stats["list"][0]["viewers"].int == 1)
            // A device that paused has a second without pictures.
            try await server.wait("streams/live/cam1/stats?seconds=1") { ($0["list"][0]["videoBitsPerSecond"].int ?? 0) > 0 }
            try await server.wait("selfcheck") { $0["ok"].bool == true }

            // Dropping cuts the publisher, which may come back.
            #expect(try await api.ok("POST", "streams/live/cam1/drop")["wasDropped"].bool == true)
            #expect(try await first.outcome().status != 0)
            try await server.wait("rooms/cam1") { $0["state"].string == "interrupted" }
            #expect(try await api.ok("GET", "rooms/cam1")["stateReason"].string == "dropped")
            let second = try ClientProcess(FFmpeg.pushForEver(source, to: url))
            defer { second.send(SIGKILL) }
            try await server.wait("rooms/cam1") { $0["state"].string == "live" }

            // Forbidding cuts the publisher and rejects it until `resume`.
            let until = Instant.text(Int64(Date().timeIntervalSince1970 + 3_600) * 1_000)
            let ban = try await api.ok("POST", "streams/live/cam1/forbid", #"{"forbiddenUntil":"\#(until)","reason":"testing"}"#)
            #expect(ban["forbiddenUntil"].string == until)
            #expect(ban["reason"].string == "testing")
            #expect(try await second.outcome().status != 0)
            #expect(try await api.ok("GET", "rooms/cam1")["state"].string == "forbidden")
            #expect(try await api.ok("GET", "streams/live/cam1")["state"].string == "forbid")
            let refused = try await ClientProcess.run(FFmpeg.push(source, to: url))
            #expect(refused.status != 0)
            try await eventually("the refusal") { server.lines.contains("reason=forbidden") }
            let listed = try await api.ok("GET", "streams/forbidden")
            #expect(listed["total"].int == 1 && listed["list"][0]["name"].string == "cam1")
            let resumed = try await api.ok("POST", "streams/live/cam1/resume")
            #expect(resumed["state"].string == "inactive")
            let twice = try await api.refused(409, "POST", "streams/live/cam1/resume")
            #expect(twice["state"].string == "inactive")
            #expect(twice["allowed"].list.map(\.string) == ["forbid"])
            let third = try ClientProcess(FFmpeg.pushForEver(source, to: url))
            defer { third.send(SIGKILL) }
            try await server.wait("rooms/cam1") { $0["state"].string == "live" }
            let all = try await api.ok("GET", "streams/published?limit=2")
            #expect(all["list"].count == 2)
            #expect(all["list"][1]["stopReason"].string == "forbidden")
            let older = try await api.ok("GET", "streams/published?before=\(all["next"].int.orThrow())")
            #expect(older["list"].list.map(\.["stopReason"].string) == ["dropped"])
            await viewer.close()
        }
    }

    /// A lookup of one stream asks only its own loops. The answer is the list's.
    @Test func oneStreamIsFoundOnItsOwnLoop() async throws {
        try await TestServer.run { server in
            let parts = server.server.parts
            let path = StreamPath(app: "live", name: "cam1")
            #expect(await parts.api.streamAnswer(path) == nil)
            let publisher = try await server.livePublisher("cam1")
            try await server.waitFor("cam1", .live)
            var viewers: [RawClient] = []
            for _ in 0..<4 { viewers.append(try await server.player(of: "cam1")) }
            publisher.send(.audio, SyntheticTag.audio(2, bytes: 20), timestamp: 40)
            try await eventually("media") { viewers.allSatisfy { !$0.media().isEmpty } }
            let answer = try await parts.api.streamAnswer(path).orThrow()
            let listed = try await parts.api.streamAnswers().first { $0.path == path }.orThrow()
            #expect(answer.publisher?.id == listed.publisher?.id && answer.publisher != nil)
            #expect(answer.bytesOut == listed.bytesOut && answer.bytesOut > 0)
            #expect(answer.state == .live && answer.snapshot.viewers == 4)
            for viewer in viewers { await viewer.close() }
            try await eventually("the viewers' end") { parts.streams.viewers(of: path) == 0 }
            let home = try parts.streams.registry.find("live/cam1").orThrow().home
            try await eventually("the home loop alone to have the stream") {
                try await home.eventLoop.submit { try home.snapshot(of: parts.streams.registry.find("live/cam1").orThrow())?.loops.count }
                    .get() == 1
            }
            await publisher.close()
        }
    }

    /// Named streams come alone; an order by figures has pages by place.
    @Test func streamsByNameAndByFigures() async throws {
        try await TestServer.run { server in
            let api = try await CheckedAPI(server)
            var publishers: [RawClient] = []
            for name in ["a", "b", "c"] { publishers.append(try await server.livePublisher(name)) }
            for name in ["a", "b", "c"] { try await server.waitFor(name, .live) }
            let viewers = [try await server.player(of: "b"), try await server.player(of: "b"), try await server.player(of: "c")]
            func names(_ query: String) async throws -> [String?] {
                try await api.ok("GET", "streams?\(query)")["list"].list.map(\.["name"].string)
            }
            #expect(try await names("streams=live/c,live/a,live/nobody,live/a") == ["a", "c"])
            #expect(try await names("streams=live/a&state=interrupted") == [])
            _ = try await api.ok("PATCH", "rooms/a", #"{"deviceUid":"dev-a"}"#)
            #expect(try await names("streams=live/dev-a,live/b") == ["a", "b"], "by a device's name")
            let named = try await api.ok("GET", "streams?streams=live%2Fb")
            #expect(named["total"].int == 1 && named["next"].isNull)
            let alone = try await api.ok("GET", "streams/live/b")["stream"]
            #expect(named["list"][0]["publisher"]["sessionId"].int == alone["publisher"]["sessionId"].int)
            #expect(named["list"][0]["viewers"].int == 2 && !named["list"][0]["worstBehindMs"].isNull)
            #expect(named["list"][0]["slowViewers"].int == 0 && alone["slowViewers"].int == 0)
            #expect(try await names("sort=viewers") == ["b", "c", "a"])
            #expect(try await names("sort=verdict") == ["b", "c", "a"])
            let first = try await api.ok("GET", "streams?sort=viewers&limit=2")
            #expect(first["total"].int == 3 && first["list"].count == 2)
            #expect(first["list"][0]["viewers"].int == 2 && first["list"][0]["roomId"].string == "b")
            #expect(first["list"][0]["publisher"]["address"].string?.isEmpty == false)
            let second = try await api.ok("GET", "streams?sort=viewers&limit=2&after=\(first["next"].string.orThrow())")
            #expect(second["list"].list.map(\.["name"].string) == ["a"] && second["next"].isNull)
            #expect(try await names("sort=viewers&after=1000") == [])
            #expect(try await names("after=live/a") == ["b", "c"])
            for query in ["sort=viewers&after=live/a", "sort=viewers&after=-1", "streams=", "streams=live", "streams=live/a,/b"] {
                try await api.refused(400, "GET", "streams?\(query)")
            }
            let many = Array(repeating: "live/a", count: 101).joined(separator: ",")
            try await api.refused(400, "GET", "streams?streams=\(many)")
            // A stream whose publisher is away has no verdict, and is worse than all that have one.
            await publishers[0].close()
            try await server.wait("streams?state=interrupted") { $0["total"].int == 1 }
            #expect(try await names("sort=verdict") == ["a", "b", "c"])
            #expect(try await names("sort=verdict&state=live") == ["b", "c"])
            #expect(try await names("sort=viewers") == ["b", "c", "a"])
            for each in viewers + publishers { await each.close() }
        }
    }

    /// A peak that the API has shown does not fall.
    @Test func thePeakDoesNotFall() async throws {
        try await TestServer.run { server in
            let api = try await CheckedAPI(server)
            try await api.ok("POST", "rooms", #"{"roomId":"cam1"}"#, status: 201)
            let viewers = [try await server.player(of: "cam1"), try await server.player(of: "cam1")]
            try await server.wait("rooms/cam1") { $0["online"].int == 2 && $0["peak"].int == 2 }
            for viewer in viewers { await viewer.close() }
            try await server.wait("rooms/cam1") { $0["online"].int == 0 }
            #expect(try await api.ok("GET", "rooms/cam1")["peak"].int == 2)
            try await eventually("the peak to be stored") { try await server.rooms.room("cam1").peak == 2 }
            #expect(server.server.parts.control.shownPeaks.all.isEmpty)
        }
    }

    /// A stream that never existed can be forbidden. A name with slashes is one name.
    @Test func namesWithSlashesAndWithoutRooms() async throws {
        try await TestServer.run { server in
            let api = try await CheckedAPI(server)
            for name in ["talk%2Froom1", "a%20b%27--", "%E2%98%83", "100%25", "semi%3Bcolon%26and%3D", "%2e.%2e"] {
                let ban = try await api.ok("POST", "streams/live/\(name)/forbid", #"{"seconds":60,"reason":"r"}"#)
                let plain = try name.removingPercentEncoding.orThrow()
                #expect(ban["name"].string == plain)
                #expect(try await api.ok("GET", "streams/live/\(name)")["state"].string == "forbid")
            }
            let first = try await api.ok("GET", "streams/forbidden?limit=4")
            #expect(first["total"].int == 6 && first["list"].count == 4)
            let rest = try await api.ok("GET", "streams/forbidden?limit=4&after=\(first["next"].string.orThrow())")
            #expect(rest["list"].count == 2 && rest["next"].isNull)
            let push = try await TagClient.connect(to: server, .publish, "live/talk/room1")
            try await eventually("the refusal") { push.current.isClosed }
            #expect(try await api.ok("POST", "streams/live/talk%2Froom1/resume")["state"].string == "inactive")
        }
    }

    @Test func sessionsAreListedAndEnded() async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 30)
        try await TestServer.run { server in
            let api = try await CheckedAPI(server)
            let push = try ClientProcess(FFmpeg.pushForEver(source, to: "\(server.rtmp)/live/cam1"))
            defer { push.send(SIGKILL) }
            var viewers: [TagClient] = []
            for _ in 0..<3 { viewers.append(try await TagClient.play(from: server, "live/cam1")) }
            try await server.wait("sessions?role=publisher") { $0["total"].int == 1 }
            try await server.wait("sessions") { $0["total"].int == 4 }
            let players = try await api.ok("GET", "sessions?role=player&stream=live%2Fcam1")
            #expect(players["total"].int == 3)
            #expect(try await api.ok("GET", "sessions?role=publisher")["total"].int == 1)
            #expect(try await api.ok("GET", "sessions?stream=live%2Fother")["total"].int == 0)
            let page = try await api.ok("GET", "sessions?limit=3")
            #expect(page["list"].count == 3)
            let rest = try await api.ok("GET", "sessions?limit=3&after=\(page["next"].int.orThrow())")
            #expect(rest["list"].count == 1 && rest["next"].isNull)
            let id = try players["list"][0]["sessionId"].int.orThrow()
            #expect(try await api.ok("DELETE", "sessions/\(id)").isNull)
            try await server.wait("sessions") { $0["total"].int == 3 }
            try await api.refused(404, "DELETE", "sessions/\(id)")
            #expect(await server.lines.comes("reason=kicked"))
            let check = try await api.ok("GET", "selfcheck")
            #expect(check["ok"].bool == true, "\(check)")
            #expect(check["list"].count == 10)
            let viewersVerdict = try check["list"].list.first { $0["name"].string == "viewers" }.orThrow()
            #expect(viewersVerdict["expected"].int == 2 && viewersVerdict["actual"].int == 2)
            for viewer in viewers { await viewer.close() }
        }
    }

    /// A kicked member loses its connection.
    @Test func kickedMembersStopPlaying() async throws {
        try await TestServer.run { server in
            let api = try await CheckedAPI(server)
            try await api.ok("POST", "rooms", #"{"roomId":"r1"}"#, status: 201)
            try await api.ok("POST", "rooms/r1/join", #"{"userId":"u1"}"#)
            try await api.ok("POST", "rooms/r1/join", #"{"userId":"u2"}"#)
            var clients: [TagClient] = []
            for user in ["u1", "u2"] {
                let play = try await api.ok("GET", "rooms/r1/play-urls?userId=\(user)")["streams"][0]["rtmp"].string.orThrow()
                let query = try play.split(separator: "?").last.map(String.init).orThrow()
                clients.append(try await TagClient.play(from: server, "live/r1?\(query)"))
            }
            try await server.wait("sessions") { $0["total"].int == 2 }
            try await api.ok("POST", "rooms/r1/members/u1/kick")
            try await eventually("the kick") { clients[0].current.isClosed }
            #expect(!clients[1].current.isClosed)
            await clients[1].close()
        }
    }
}
