import APITestSupport
import Foundation
import PostgresTestSupport
import RTMPTestSupport
import RoomRegistry
import Rooms
import ServerConfiguration
import ServerTestSupport
import Support
import TestSupport
import Testing

@testable import ControlAPI
@testable import EarshotServer

/// The audit trail of what other clients than those of HTTP do, and of live connections that calls end.
@Suite struct APIAuditTests {
    private func lines(_ api: CheckedAPI, _ query: String = "") async throws -> [JSON] {
        try await api.ok("GET", "audit\(query)")["list"].list
    }

    /// With which tool somebody acted: a program, the command, the console; the command in the data directory too.
    @Test func whichToolItWas() async throws {
        try await Fixture.withDirectory { directory in
            try await TestServer.run { server in
                let api = try await CheckedAPI(server)
                try await api.ok("POST", "rooms", #"{"roomId":"program"}"#, status: 201)
                _ = try await server.cli(.ops, in: directory).text("rooms", "create", "--room-id", "command")
                let body = Data(#"{"token":"\#(server.token)"}"#.utf8)
                let login = try await HTTPAnswer.call("POST", "\(server.http)/console/login", body: body)
                let cookie = String(try login.headers["set-cookie"].orThrow().prefix { $0 != ";" })
                let csrf = try login.json()["data"]["csrf"].string.orThrow()
                let page = ["Cookie": cookie, "X-Csrf-Token": csrf, "Sec-Fetch-Site": "same-origin"]
                #expect(try await server.call("POST", "rooms", #"{"roomId":"page"}"#, token: "", headers: page).status == 201)
                // Another site's request with the browser's cookie is refused, and recorded as such.
                _ = try await server.call("POST", "rooms/page/close", token: "", headers: ["Cookie": cookie])
                try await api.refused(401, "POST", "rooms/page/close", token: "")
                try await eventually("all lines") { try await self.lines(api).count == 6 }
                let all = try await self.lines(api).map { "\($0["operation"].string ?? "") \($0["via"].string ?? "-")" }
                #expect(
                    all.reversed() == [
                        "createRoom api", "createRoom cli", "logInToConsole console", "createRoom console", "closeRoom console",
                        "closeRoom api",
                    ])
                #expect(try await self.lines(api, "?via=cli").map(\.["after"]["state"].string) == ["created"])
                try await api.refused(400, "GET", "audit?via=phone")
            }
        }
    }

    /// Links, recordings and gatherings are no rooms, and their lines say what changed all the same; a credential is in none.
    @Test func otherThingsToo() async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 30)
        try await TestServer.run({ $0.outbound.allowPrivate = CIDR.loopback }) { server in
            let api = try await CheckedAPI(server)
            let link = #"{"direction":"pull","app":"live","name":"far","url":"rtmp://127.0.0.1:1/live/x?key=hush","onDemand":true}"#
            let made = try await api.ok("POST", "links", link, status: 201)["linkId"].int.orThrow()
            try await api.refused(409, "POST", "links", link)
            try await api.ok("DELETE", "links/\(made)")
            var lines = try await self.lines(api, "?stream=live/far&result=ok")
            #expect(lines.map(\.["operation"].string) == ["deleteLink", "createLink"])
            #expect(lines.map(\.["object"].string) == ["link/\(made)", "link/\(made)"])
            for value in [lines[0]["before"], lines[1]["after"]] {
                #expect(value["direction"].string == "pull" && value["onDemand"].bool == true)
                #expect(value["target"].string?.hasPrefix("rtmp://127.0.0.1:1/live") == true)
            }
            #expect(lines[0]["after"].isNull && lines[1]["before"].isNull)
            try await eventually("the refusal's line") { try await self.lines(api, "?result=conflict").count == 1 }
            let refusal = try await self.lines(api, "?result=conflict")[0]
            #expect(refusal["before"].isNull && refusal["after"].isNull, "it changed nothing")

            try await ClientProcess.during(FFmpeg.pushForEver(source, to: "\(server.rtmp)/live/r1")) { _ in
                try await server.wait("rooms/r1") { $0["state"].string == "live" }
                try await api.ok("POST", "rooms/r1/record", #"{"action":"start"}"#)
                try await server.wait("recordings?roomId=r1") { $0["list"].count == 1 }
                try await api.ok("POST", "rooms/r1/record", #"{"action":"stop"}"#)
            }
            try await server.wait("recordings?roomId=r1") { $0["list"][0]["state"].string == "finished" }
            let id = try await api.ok("GET", "recordings?roomId=r1")["list"][0]["recordingId"].string.orThrow()
            try await api.ok("DELETE", "recordings/\(id)")
            lines = try await self.lines(api, "?stream=live/r1")
            #expect(lines.map(\.["operation"].string) == ["deleteRecording", "recordRoom", "recordRoom"])
            #expect(lines.map(\.["before"]["isRecording"].bool) == [nil, true, false])
            #expect(lines.map(\.["after"]["isRecording"].bool) == [nil, false, true])
            #expect(lines[0]["before"]["state"].string == "finished" && lines[0]["after"]["state"].string == "deleted")
            #expect(lines.allSatisfy { $0["roomId"].string == "r1" } && lines[0]["object"].string == "recording/\(id)")

            try await api.ok("POST", "rooms", #"{"roomId":"r"}"#, status: 201)
            for user in ["ann", "bob"] {
                let url = try await api.ok("POST", "rooms/r/channel-token", #"{"userId":"\#(user)"}"#)["url"].string.orThrow()
                let port = server.addresses.http.port
                let member = try await WebSocketClient.open(port, try url.components(separatedBy: ":\(port)").last.orThrow())
                _ = try await member.message("hello", within: 60)
            }
            try await api.ok("POST", "gatherings/plain-r/queue/pause")
            try await api.ok("POST", "gatherings/plain-r/kick", #"{"userId":"ann"}"#)
            try await api.ok("POST", "gatherings/plain-r/end")
            try await eventually("three lines") { try await self.gatheringLines(api).count == 3 }
            lines = try await self.gatheringLines(api)
            #expect(lines.map(\.["operation"].string) == ["endGathering", "kickFromGathering", "pauseQueue"])
            #expect(lines[2]["before"]["isPaused"].bool == false && lines[2]["after"]["isPaused"].bool == true)
            #expect(lines[1]["before"]["userId"].string == "ann" && lines[0]["before"]["members"].int == 1)
            #expect(try await !api("GET", "audit").text.contains("hush"))
        }
    }

    /// Events, log and trail name the token that dropped a stream.
    @Test func aDropNamesItsCaller() async throws {
        try await TestServer.run { server in
            let api = try await CheckedAPI(server)
            let publisher = try await server.livePublisher("cam1")
            try await server.waitFor("cam1", .live)
            #expect(try await api.ok("POST", "streams/live/cam1/drop")["wasDropped"].bool == true)
            try await server.expectClosed(publisher, .dropped)
            try await server.waitFor("cam1", .interrupted)
            let events = try await api.ok("GET", "rooms/cam1/events")["list"].list
            let ends = events.filter { ["stream.end", "room.interrupted"].contains($0["kind"].string) }
            #expect(ends.count == 2 && ends.allSatisfy { $0["data"]["by"].string == "token:first" }, "\(ends.map(\.value))")
            #expect(ends[0]["data"]["end"].string == "dropped")
            #expect(await server.lines.comes("reason=dropped", "By token:first."))
            let line = try await self.lines(api, "?operation=dropStream").first.orThrow()
            #expect(line["roomId"].string == "cam1" && line["stream"].string == "live/cam1" && line["token"].string == "first")
            // Nothing to drop: a call all the same.
            #expect(try await api.ok("POST", "streams/live/nobody/drop")["wasDropped"].bool == false)
            try await eventually("its line") { try await self.lines(api, "?stream=live/nobody").count == 1 }
        }
    }

    @Test func aKickedSessionNamesItsCaller() async throws {
        try await TestServer.run { server in
            let api = try await CheckedAPI(server)
            let publisher = try await server.livePublisher("cam1")
            try await server.waitFor("cam1", .live)
            let session = try await api.ok("GET", "sessions")["list"][0]
            let id = try session["sessionId"].int.orThrow()
            try await api.ok("DELETE", "sessions/\(id)")
            try await server.expectClosed(publisher, .kicked)
            let events = try await api.ok("GET", "rooms/cam1/events")["list"].list
            let kick = try events.first { $0["kind"].string == "session.kick" }.orThrow()
            #expect(kick["data"]["by"].string == "token:first" && kick["data"]["sessionId"].int == id)
            #expect(kick["data"]["publishing"][0].string == "live/cam1" && kick["data"]["transport"].string == "rtmp")
            let end = try events.first { $0["kind"].string == "stream.end" }.orThrow()
            #expect(end["data"]["by"].string == "token:first")
            #expect(events.count { $0["kind"].string == "stream.end" } == 1)
            #expect(await server.lines.comes("reason=kicked", "ended by token:first"))
            let line = try await self.lines(api, "?operation=endSession").first.orThrow()
            #expect(line["object"].string == "session/\(id)" && line["roomId"].string == "cam1" && line["result"].string == "ok")
            let former = line["before"]
            #expect(former["clientAddress"].string?.hasPrefix("127.0.0.1:") == true && former["transport"].string == "rtmp", "\(line)")
            try await api.refused(404, "DELETE", "sessions/\(id)")
        }
    }

    @Test func theCommandLinesTokensHaveLines() async throws {
        try await Fixture.withDirectory { directory in
            let data = directory.appendingPathComponent("data").path
            try await TestServer.run(data: data) { server in
                let tokens = try TokenStore(try TestPostgres.store(in: data))
                let made = try tokens.create(name: "shop", role: .backend)
                _ = try tokens.revoke(made.token.id)
                tokens.close()
                let api = try await CheckedAPI(server)
                let all = try await self.lines(api)
                #expect(all.map(\.["operation"].string) == ["revokeToken", "createToken"])
                #expect(all.allSatisfy { $0["token"].string == "cli" && $0["object"].string == "token/\(made.token.id)" })
                let cli = try await server.cli(in: directory)
                let text = try await cli.text("audit", "--operation", "createToken")
                #expect(text.contains("createToken") && text.contains("name - > shop"), "\(text)")
            }
        }
    }

    private func gatheringLines(_ api: CheckedAPI) async throws -> [JSON] {
        try await self.lines(api).filter { $0["object"].string == "gathering/plain-r" }
    }
}
