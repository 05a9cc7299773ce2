import APITestSupport
import Foundation
import PostgresTestSupport
import RoomRegistry
import Rooms
import ServerConfiguration
import ServerTestSupport
import Support
import TestSupport
import Testing

@testable import ControlAPI
@testable import HTTPAPI

/// The audit trail: every change has a line, and no secret is in one.
@Suite struct APIAuditTests {
    private func lines(_ api: CheckedAPI, _ query: String = "") async throws -> [JSON] {
        try await api.ok("GET", "audit\(query)")["list"].list
    }

    @Test func aChangeTellsWhoAndWhat() async throws {
        try await UnboundServer.run { server in
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

    @Test func filtersAndPages() async throws {
        try await UnboundServer.run { server in
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

    /// A refused change leaves a line in the trail and in the log; a refused read only in the log.
    @Test func refusalsAreToldOfToo() async throws {
        try await UnboundServer.run { server in
            let api = try await CheckedAPI(server)
            let app = try await api.ok("POST", "tokens", #"{"name":"app","role":"backend"}"#, status: 201)
            let secret = try app["secret"].string.orThrow()
            try await api.refused(401, "POST", "rooms/r1/close", token: "")
            try await api.refused(401, "POST", "rooms/r1/close", token: "earshot_wrong")
            try await api.refused(403, "POST", "streams/live/x/forbid", token: secret)
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
            #expect(await server.lines.comes("An API call was refused", "call=forbidStream", "status=403", "token=app", "request="))
            #expect(!server.lines.all.contains { $0.contains(secret) || $0.contains("earshot_wrong") })
        }
    }

    /// The line is stored in the change's transaction: without it there is no change.
    @Test(
        .disabled(if: TestPostgres.isOn, "changes SQLite's file"),
        arguments: [
            ("POST", "rooms", #"{"title":"one"}"#), ("PATCH", "rooms/r1", #"{"title":"two"}"#), ("POST", "rooms/r1/close", "{}"),
            ("DELETE", "rooms/r1", nil), ("POST", "rooms/r1/join", #"{"userId":"ann"}"#),
            ("POST", "tokens", #"{"name":"x","role":"backend"}"#),
            ("POST", "streams/live/s2/forbid", "{}"), ("PATCH", "rooms/r1/talk", #"{"talkers":2}"#),
        ]) func withoutItsLineNothingIsDone(_ method: String, _ path: String, _ body: String?) async throws
    {
        try await UnboundServer.run { server in
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
        try await UnboundServer.run { server in
            let api = try await CheckedAPI(server)
            let key = ["Idempotency-Key": "k"]
            for _ in 0..<3 { try await api.ok("POST", "rooms", #"{"roomId":"r1"}"#, status: 201, headers: key) }
            try await api.ok("POST", "rooms/r1/join", #"{"userId":"ann"}"#)
            let all = try await self.lines(api)
            #expect(all.map(\.["operation"].string) == ["joinRoom", "createRoom"])
            #expect(all[0]["object"].string == "user/ann")
        }
    }
}
