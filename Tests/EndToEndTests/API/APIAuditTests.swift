import Foundation
import PostgresTestSupport
import RoomStore
import Rooms
import ServerConfiguration
import ServerTestSupport
import Support
import TestSupport
import Testing

@testable import ControlAPI
@testable import EarshotServer

/// The audit trail: every change has a line, and no secret is in one.
@Suite struct APIAuditTests {
    private func lines(_ api: CheckedAPI, _ query: String = "") async throws -> [JSON] {
        try await api.ok("GET", "audit\(query)")["list"].list
    }

    @Test func aChangeTellsWhoAndWhat() async throws {
        try await TestServer.run { server in
            let api = try await CheckedAPI(server)
            let made = try await api.ok("POST", "tokens", #"{"name":"ops-laptop","role":"ops"}"#, status: 201)
            let secret = try made["secret"].string.orThrow()
            try await api.ok("POST", "rooms", #"{"roomId":"r1","title":"one"}"#, status: 201, token: secret)
            let patched = try await api(
                "PATCH", "rooms/r1", #"{"title":"two","policy":{"grace":7}}"#, token: secret, headers: ["X-Request-Id": "mine"])
            try await api.ok("POST", "rooms/r1/heartbeat", token: secret)
            try await api.ok("GET", "rooms/r1", token: secret)
            try await api.ok("POST", "rooms/r1/close", token: secret)
            let all = try await self.lines(api)
            #expect(all.map(\.["operation"].string) == ["closeRoom", "updateRoom", "createRoom", "createToken"])
            #expect(all.map(\.["token"].string) == ["ops-laptop", "ops-laptop", "ops-laptop", "first"])
            #expect(all.allSatisfy { $0["result"].string == "ok" && $0["address"].string == "127.0.0.1" && !$0["tokenId"].isNull })
            #expect(all.prefix(3).allSatisfy { $0["roomId"].string == "r1" })
            #expect(all[1]["before"]["title"].string == "one" && all[1]["after"]["title"].string == "two")
            #expect(all[1]["before"]["policy.grace"].int == 30 && all[1]["after"]["policy.grace"].int == 7)
            // Only what has changed.
            #expect(all[1]["after"]["state"].string == nil && all[0]["after"]["title"].string == nil)
            #expect(all[0]["before"]["state"].string == "created" && all[0]["after"]["state"].string == "closed")
            #expect(all[1]["requestId"].string == patched.headers["x-request-id"])
            #expect(all[3]["object"].string == "token/\(made["tokenId"].int ?? 0)" && all[3]["after"]["role"].string == "ops")
            #expect(all[3]["status"].int == 201)
            let text = try await api("GET", "audit").text
            #expect(!text.contains(secret) && !text.contains(server.token))
        }
    }

    /// With which tool somebody acted: a program, the command, the console; the command in the data directory too.
    @Test func whichToolItWas() async throws {
        try await Fixture.withDirectory { directory in
            try await TestServer.run { server in
                let api = try await CheckedAPI(server)
                try await api.ok("POST", "rooms", #"{"roomId":"program"}"#, status: 201)
                _ = try await server.cli(.ops, in: directory).text("rooms", "create", "--id", "command")
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

    @Test func filtersAndPages() async throws {
        try await TestServer.run { server in
            let api = try await CheckedAPI(server)
            for id in ["a", "b", "c"] { try await api.ok("POST", "rooms", #"{"roomId":"\#(id)"}"#, status: 201) }
            try await api.ok("POST", "streams/live/b/forbid", #"{"reason":"noise"}"#)
            let page = try await api.ok("GET", "audit?limit=2")
            #expect(page["list"].list.map(\.["operation"].string) == ["forbidStream", "createRoom"])
            let next = try page["next"].int.orThrow()
            #expect(try await self.lines(api, "?before=\(next)").map(\.["roomId"].string) == ["b", "a"])
            // A stream's call is a call on its room.
            #expect(try await self.lines(api, "?roomId=b").map(\.["operation"].string) == ["forbidStream", "createRoom"])
            let ban = try await self.lines(api, "?stream=live/b")
            #expect(ban.count == 1 && ban[0]["after"]["forbidReason"].string == "noise" && ban[0]["before"].isNull)
            #expect(try await self.lines(api, "?operation=createRoom&token=first&result=ok").count == 3)
            #expect(try await self.lines(api, "?token=nobody").isEmpty)
            #expect(try await self.lines(api, "?to=2020-01-01T00:00:00Z").isEmpty)
            #expect(try await self.lines(api, "?from=2020-01-01T00:00:00Z").count == 4)
            try await api.refused(400, "GET", "audit?result=fine")
            let csv = try await api("GET", "audit?format=csv&roomId=b")
            #expect(csv.contentType == "text/csv; charset=utf-8")
            let rows = csv.text.split(separator: "\r\n")
            #expect(rows.count == 3 && rows[0].hasPrefix("auditId,at,tokenId,token,") && rows[1].contains(",forbidStream,b,live/b,"))
        }
    }

    /// Links, recordings and gatherings are no rooms, and their lines say what changed all the same; a credential is in none.
    @Test func otherThingsToo() async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 30)
        try await TestServer.run({ $0.outbound.allowPrivate = CIDR.loopback }) { server in
            let api = try await CheckedAPI(server)
            let link = #"{"direction":"pull","app":"live","name":"far","url":"rtmp://127.0.0.1:1/live/x?key=hush","onDemand":true}"#
            let task = try await api.ok("POST", "relay-tasks", link, status: 201)["taskId"].int.orThrow()
            try await api.refused(409, "POST", "relay-tasks", link)
            try await api.ok("DELETE", "relay-tasks/\(task)")
            var lines = try await self.lines(api, "?stream=live/far&result=ok")
            #expect(lines.map(\.["operation"].string) == ["deleteRelayTask", "createRelayTask"])
            #expect(lines.map(\.["object"].string) == ["relay-task/\(task)", "relay-task/\(task)"])
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

    private func gatheringLines(_ api: CheckedAPI) async throws -> [JSON] {
        try await self.lines(api).filter { $0["object"].string == "gathering/plain-r" }
    }

    /// A refused change leaves a line in the trail and in the log; a refused read only in the log.
    @Test func refusalsAreToldOfToo() async throws {
        try await TestServer.run { server in
            let api = try await CheckedAPI(server)
            let app = try await api.ok("POST", "tokens", #"{"name":"app","role":"app"}"#, status: 201)
            let secret = try app["secret"].string.orThrow()
            try await api.refused(401, "POST", "rooms/r1/close", token: "")
            try await api.refused(401, "POST", "rooms/r1/close", token: "earshot_wrong")
            try await api.refused(403, "POST", "streams/live/x/drop", token: secret)
            try await api.refused(404, "POST", "rooms/none/close", token: secret)
            try await api.refused(401, "GET", "rooms", token: "earshot_other")
            try await api.ok("DELETE", "tokens/\(app["tokenId"].int ?? 0)")
            try await api.refused(401, "DELETE", "rooms/r1", token: secret)
            try await eventually("seven lines") { try await self.lines(api, "?limit=100").count == 7 }
            let all = try await self.lines(api)
            let refused = all.filter { $0["result"].string == "unauthorized" }
            #expect(refused.map(\.["operation"].string) == ["deleteRoom", "closeRoom", "closeRoom"])
            // A revoked token is still known by name, a wrong one by its hash only.
            #expect(refused[0]["token"].string == "app" && refused[0]["tokenHash"].isNull)
            #expect(refused[1]["tokenHash"].string?.utf8.count == 8 && refused[1]["token"].isNull)
            #expect(refused[2]["tokenHash"].isNull && refused[2]["token"].isNull)
            let role = try all.first { $0["result"].string == "forbidden" }.orThrow()
            #expect(role["token"].string == "app" && role["stream"].string == "live/x" && role["status"].int == 403)
            #expect(all.first { $0["result"].string == "not_found" }?["roomId"].string == "none")
            #expect(await server.lines.comes("An API call was refused", "call=closeRoom", "status=401", "tokenHash="))
            #expect(await server.lines.comes("An API call was refused", "call=listRooms", "status=401", "tokenHash="))
            #expect(await server.lines.comes("An API call was refused", "call=dropStream", "status=403", "token=app", "request="))
            #expect(!server.lines.all.contains { $0.contains(secret) || $0.contains("earshot_wrong") })
        }
    }

    /// The line is stored in the change's transaction: without it there is no change.
    @Test(
        .disabled(if: TestPostgres.isOn, "changes SQLite's file"),
        arguments: [
            ("POST", "rooms", #"{"title":"one"}"#), ("PATCH", "rooms/r1", #"{"title":"two"}"#), ("POST", "rooms/r1/close", "{}"),
            ("DELETE", "rooms/r1", nil), ("POST", "rooms/r1/join", #"{"userId":"ann"}"#), ("POST", "tokens", #"{"name":"x","role":"app"}"#),
            ("POST", "streams/live/s2/forbid", "{}"), ("PATCH", "rooms/r1/talk", #"{"talkers":2}"#),
        ]) func withoutItsLineNothingIsDone(_ method: String, _ path: String, _ body: String?) async throws
    {
        try await TestServer.run { server in
            let api = try await CheckedAPI(server)
            try await api.ok("POST", "rooms", #"{"roomId":"r1"}"#, status: 201)
            func state() async throws -> [Data] {
                var texts: [Data] = []
                for path in ["rooms", "rooms/r1/members", "tokens", "streams/forbidden", "rooms/r1/talk", "rooms/r1/events"] {
                    let data = try await api.ok("GET", path).value.orThrow()
                    texts.append(try JSONSerialization.data(withJSONObject: data, options: .sortedKeys))
                }
                return texts
            }
            let before = try await state()
            try await server.changeStore("CREATE TRIGGER no_lines BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'no'); END")
            let refused = try await api(method, path, body)
            #expect(refused.status == 503, "\(refused.text)")
            #expect(try await state() == before)
            try await server.changeStore("DROP TRIGGER no_lines")
            let done = try await api(method, path, body)
            #expect(done.status < 300, "\(done.text)")
        }
    }

    /// A repetition of a call with a key does nothing, and leaves no second line.
    @Test func aRepetitionIsNoChange() async throws {
        try await TestServer.run { server in
            let api = try await CheckedAPI(server)
            let key = ["Idempotency-Key": "k"]
            for _ in 0..<3 { try await api.ok("POST", "rooms", #"{"roomId":"r1"}"#, status: 201, headers: key) }
            try await api.ok("POST", "rooms/r1/join", #"{"userId":"ann"}"#)
            let all = try await self.lines(api)
            #expect(all.map(\.["operation"].string) == ["joinRoom", "createRoom"])
            #expect(all[0]["object"].string == "user/ann")
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
                let made = try tokens.create(name: "shop", role: .app)
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
}
