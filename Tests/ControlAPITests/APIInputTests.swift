import APITestSupport
import Foundation
import NIOCore
import ServerTestSupport
import Testing

/// Bad requests to a server: each error names field, value and rule, and nothing is left behind.
@Suite struct APIInputTests {
    /// Bodies of `POST /rooms`, and the field that the error names.
    static let badRooms: [(body: String, field: String)] = [
        (#"{"roomId":""}"#, "roomId"), (#"{"roomId":"a b"}"#, "roomId"), (#"{"roomId":"../x"}"#, "roomId"), (#"{"roomId":"é"}"#, "roomId"),
        (#"{"roomId":null}"#, "roomId"), (#"{"roomId":1}"#, "roomId"), (#"{"roomId":["a"]}"#, "roomId"), (#"{"roomId":"a';--"}"#, "roomId"),
        ("{\"roomId\":\"\(String(repeating: "x", count: 65))\"}", "roomId"),
        ("{\"title\":\"\(String(repeating: "x", count: 201))\"}", "title"),
        ("{\"title\":\"\(String(repeating: "☃", count: 201))\"}", "title"),
        (#"{"title":"a\u0000b"}"#, "title"), (#"{"title":"a\nb"}"#, "title"), (#"{"title":5}"#, "title"), (#"{"title":null}"#, "title"),
        (#"{"slots":0}"#, "slots"), (#"{"slots":9}"#, "slots"), (#"{"slots":1.5}"#, "slots"), (#"{"slots":"1"}"#, "slots"),
        (#"{"slots":-1}"#, "slots"),
        (#"{"slots":1e30}"#, "slots"), (#"{"slots":99999999999999999999}"#, "slots"), (#"{"slots":true}"#, "slots"),
        (#"{"isPublic":"true"}"#, "isPublic"), (#"{"isPublic":1}"#, "isPublic"), (#"{"isPublic":null}"#, "isPublic"),
        (#"{"owner":""}"#, "owner"), (#"{"owner":"a/b"}"#, "owner"), (#"{"owner":{}}"#, "owner"), (#"{"deviceUid":"a b"}"#, "deviceUid"),
        (#"{"app":"a/b"}"#, "app"), (#"{"app":"talk"}"#, "app"), (#"{"app":""}"#, "app"),
        (#"{"custom":[]}"#, "custom"), (#"{"custom":"{}"}"#, "custom"), (#"{"custom":null}"#, "custom"), (#"{"custom":5}"#, "custom"),
        ("{\"custom\":{\"x\":\"\(String(repeating: "x", count: 4_096))\"}}", "custom"),
        (#"{"policy":5}"#, "policy"), (#"{"policy":{"grace":-1}}"#, "policy.grace"), (#"{"policy":{"grace":86401}}"#, "policy.grace"),
        (#"{"policy":{"grace":"5"}}"#, "policy.grace"), (#"{"policy":{"grace":null}}"#, "policy.grace"),
        (#"{"policy":{"gracе":1}}"#, "policy.gracе"),
        (#"{"policy":{"neverStarted":0}}"#, "policy.neverStarted"), (#"{"policy":{"heartbeatMisses":0}}"#, "policy.heartbeatMisses"),
        (#"{"policy":{"heartbeatMisses":101}}"#, "policy.heartbeatMisses"),
        (#"{"policy":{"heartbeatMisses":2.5}}"#, "policy.heartbeatMisses"),
        (#"{"titel":"x"}"#, "titel"), (#"{"state":"live"}"#, "state"), (#"{"__proto__":{}}"#, "__proto__"), (#"{"":1}"#, ""),
        (#"{"title":"a","title":"b"}"#, "body"), (#"{"title":"a",}"#, "body"), ("[]", "body"), ("null", "body"), ("\"x\"", "body"),
        ("{", "body"), ("}", "body"),
        ("", "ok"), ("{\"a\":\(String(repeating: "[", count: 5_000))", "body"), ("\u{FEFF}{}", "body"), ("{'title':'x'}", "body"),
        ("{\"title\":\"\\ud800\"}", "body"), ("{\"slots\":NaN}", "body"), ("{\"slots\":01}", "body"),
    ]

    @Test func badRoomsAreRefused() async throws {
        try await UnboundServer.run { server in
            let api = try await CheckedAPI(server)
            for (body, field) in Self.badRooms where field != "ok" {
                let answer = try await api("POST", "rooms", body)
                #expect(answer.status == 400, "\(body.prefix(100)): \(answer.text)")
                let error = try answer.json()["error"]
                #expect(error["type"].string == "invalid")
                #expect(error["field"].string == field, "\(body.prefix(100)): \(answer.text)")
                #expect(error["rule"].string?.isEmpty == false, "\(body.prefix(100)): \(answer.text)")
                #expect((error["value"].string ?? "").utf8.count <= 400, "a long value is shortened")
            }
            #expect(try await api.ok("GET", "rooms")["total"].int == 0)
            #expect(try await api.ok("GET", "events")["list"].count == 0)
        }
    }

    /// The largest allowed values are accepted.
    @Test func limitsAreReached() async throws {
        try await UnboundServer.run { server in
            let api = try await CheckedAPI(server)
            let id = String(repeating: "x", count: 64)
            let title = String(repeating: "☃", count: 198) + "ab"
            let custom = String(repeating: "x", count: 4_096 - #"{"x":""}"#.utf8.count)
            let body = """
                {"roomId":"\(id)","title":"\(title)","custom":{ "x" : "\(custom)" },"slots":8,"owner":"\(id)","deviceUid":"\(id)",
                 "policy":{"grace":86400,"heartbeatMisses":100}}
                """
            let room = try await api.ok("POST", "rooms", body, status: 201)
            #expect(room["title"].string == title)
            #expect(room["streams"].count == 8)
            #expect(room["custom"]["x"].string == custom)
            // A second later it is gone.
            try await api.ok("POST", "rooms", #"{"roomId":"short","policy":{"neverStarted":1,"retention":0}}"#, status: 201)
            try await api.ok("POST", "rooms/\(id)/forbid", "{\"seconds\":7776000,\"reason\":\"\(String(repeating: "r", count: 2_048))\"}")
        }
    }

    /// Method, path, body, and the field that the error names.
    static let badCalls: [(method: String, path: String, body: String?, field: String)] = [
        ("GET", "rooms?page=0", nil, "page"), ("GET", "rooms?page=-1", nil, "page"), ("GET", "rooms?page=x", nil, "page"),
        ("GET", "rooms?page=10001", nil, "page"), ("GET", "rooms?page=501&pageSize=20", nil, "page"),
        ("GET", "rooms?page=1.5", nil, "page"),
        ("GET", "rooms?page=", nil, "page"), ("GET", "rooms?page=%2B1", nil, "page"), ("GET", "rooms?page=01", nil, "page"),
        ("GET", "rooms?page=99999999999999999999999", nil, "page"), ("GET", "rooms?page=2&after=x", nil, "page"),
        ("GET", "rooms?pageSize=0", nil, "pageSize"), ("GET", "rooms?pageSize=201", nil, "pageSize"),
        ("GET", "rooms?pageSize=1e3", nil, "pageSize"),
        ("GET", "rooms?state=alive", nil, "state"), ("GET", "rooms?state=", nil, "state"), ("GET", "rooms?state=LIVE", nil, "state"),
        ("GET", "rooms?sort=up", nil, "sort"), ("GET", "rooms?isPublic=yes", nil, "isPublic"), ("GET", "rooms?owner=a%20b", nil, "owner"),
        ("GET", "rooms?after=x", nil, "after"), ("GET", "rooms?after=%27%20OR%201=1", nil, "after"), ("GET", "rooms?q=", nil, "q"),
        ("GET", "rooms?q=\(String(repeating: "x", count: 201))", nil, "q"), ("GET", "rooms?q=%00", nil, "q"),
        ("GET", "rooms?q=%ff", nil, "query"),
        ("GET", "rooms?stat=live", nil, "stat"), ("GET", "rooms?state=live&state=live", nil, "state"),
        ("GET", "rooms/a%20b", nil, "roomId"),
        ("GET", "rooms/a%2F..%2Fb", nil, "roomId"), ("GET", "rooms/%00", nil, "roomId"),
        ("GET", "rooms/\(String(repeating: "x", count: 65))", nil, "roomId"),
        ("GET", "rooms/%FF", nil, "path"), ("GET", "rooms/r1/events?after=-1", nil, "after"),
        ("GET", "rooms/r1/events?limit=0", nil, "limit"),
        ("GET", "rooms/r1/events?limit=1001", nil, "limit"), ("GET", "rooms/r1/members?after=..", nil, "after"),
        ("GET", "events?roomId=a%2Fb", nil, "roomId"),
        ("POST", "rooms/r1/close", #"{"force":true}"#, "force"), ("POST", "rooms/r1/join", nil, "body"),
        ("POST", "rooms/r1/join", "{}", "userId"),
        ("POST", "rooms/r1/join", #"{"userId":"a b"}"#, "userId"), ("POST", "rooms/r1/join", #"{"userId":"a","nick":5}"#, "nick"),
        ("POST", "rooms/r1/join", "{\"userId\":\"a\",\"nick\":\"\(String(repeating: "x", count: 101))\"}", "nick"),
        ("POST", "rooms/r1/members/a%2Fb/kick", nil, "userId"), ("POST", "rooms/r1/renew", #"{"seconds":0}"#, "seconds"),
        ("POST", "rooms/r1/renew", #"{"seconds":2592001}"#, "seconds"), ("POST", "rooms/r1/heartbeat", #"{"userId":""}"#, "userId"),
        ("POST", "rooms/r1/pause", #"{"slot":0}"#, "slot"), ("POST", "rooms/r1/pause", #"{"slot":9}"#, "slot"),
        ("POST", "rooms/r1/forbid", #"{"forbiddenUntil":"tomorrow"}"#, "forbiddenUntil"),
        ("POST", "rooms/r1/forbid", #"{"forbiddenUntil":"2001-01-01T00:00:00Z"}"#, "forbiddenUntil"),
        ("POST", "rooms/r1/forbid", #"{"forbiddenUntil":"9999-01-01T00:00:00Z"}"#, "forbiddenUntil"),
        ("POST", "rooms/r1/forbid", #"{"forbiddenUntil":1790000000}"#, "forbiddenUntil"),
        ("POST", "rooms/r1/forbid", #"{"seconds":0.5}"#, "seconds"), ("POST", "rooms/r1/forbid", #"{"seconds":7776001}"#, "seconds"),
        ("POST", "rooms/r1/forbid", "{\"reason\":\"\(String(repeating: "r", count: 2_049))\"}", "reason"),
        ("POST", "rooms/r1/forbid", #"{"reason":"a\u0007"}"#, "reason"),
        ("POST", "streams/live/r1/forbid", #"{"forbiddenUntil":"2001-01-01T00:00:00Z"}"#, "forbiddenUntil"),
        ("POST", "streams/live/r1/forbid", #"{"forbiddenUntil":"9999-01-01T00:00:00Z"}"#, "forbiddenUntil"),
        ("POST", "streams/live/r1/forbid", #"{"forbiddenUntil":"2030-01-01T00:00:00Z"}"#, "forbiddenUntil"),
        ("POST", "streams/live/r1/forbid", #"{"until":"2030-01-01T00:00:00Z"}"#, "until"),
        ("POST", "rooms/r1/push-url", #"{"slot":2}"#, "slot"), ("POST", "rooms/r1/push-url", #"{"lifetime":0}"#, "lifetime"),
        ("POST", "rooms/r1/push-url", #"{"lifetime":2592001}"#, "lifetime"),
        ("POST", "rooms/r1/push-url", #"{"lifetime":1.5}"#, "lifetime"),
        ("POST", "rooms/r1/push-url", #"{"scheme":"none"}"#, "scheme"), ("POST", "rooms/r1/push-url", #"{"userId":"a b"}"#, "userId"),
        ("GET", "rooms/r1/play-urls?lifetime=0", nil, "lifetime"), ("GET", "rooms/r1/push-url.svg?size=0", nil, "size"),
        ("GET", "rooms/r1/push-url.png?size=33", nil, "size"), ("GET", "streams/live/a%3Fb", nil, "name"),
        ("GET", "streams/live/a%00b", nil, "name"),
        ("GET", "streams/live/a%2F..%2Fb", nil, "name"), ("GET", "streams/a%2Fb/c", nil, "app"),
        ("GET", "streams/live/\(String(repeating: "n", count: 257))", nil, "name"), ("GET", "streams/live/a%2F%2Fb", nil, "name"),
        ("GET", "streams/live/r1/stats?seconds=0", nil, "seconds"), ("GET", "streams?state=on", nil, "state"),
        ("GET", "streams?limit=0", nil, "limit"),
        ("GET", "streams/published?name=x", nil, "app"), ("GET", "streams/published?app=x", nil, "name"),
        ("GET", "streams/published?from=x", nil, "from"),
        ("GET", "streams/forbidden?after=%25", nil, "after"), ("DELETE", "sessions/x", nil, "sessionId"),
        ("DELETE", "sessions/0", nil, "sessionId"),
        ("DELETE", "sessions/99999999999999999999", nil, "sessionId"), ("GET", "sessions?role=viewer", nil, "role"),
        ("GET", "webhooks/deliveries?state=lost", nil, "state"), ("POST", "webhooks/deliveries/x/redeliver", nil, "deliveryId"),
        ("POST", "tokens", #"{"name":"x"}"#, "role"), ("POST", "tokens", #"{"name":"x","role":"root"}"#, "role"),
        ("POST", "tokens", #"{"role":"ops"}"#, "name"),
        ("POST", "tokens", #"{"name":"","role":"ops"}"#, "name"),
        ("POST", "tokens", "{\"name\":\"\(String(repeating: "x", count: 65))\",\"role\":\"ops\"}", "name"),
        ("DELETE", "tokens/-1", nil, "tokenId"), ("PATCH", "rooms/r1", #"{"roomId":"x"}"#, "roomId"),
        ("PATCH", "rooms/r1", #"{"title":null}"#, "title"),
        ("PATCH", "rooms/r1", #"{"state":"live"}"#, "state"), ("GET", "counters?x=1", nil, "x"), ("GET", "openapi.json?x=1", nil, "x"),
    ]

    @Test func badCallsAreRefused() async throws {
        try await UnboundServer.run { server in
            let api = try await CheckedAPI(server)
            try await api.ok("POST", "rooms", #"{"roomId":"r1"}"#, status: 201)
            let before = try await api.ok("GET", "rooms/r1")
            for (method, path, body, field) in Self.badCalls {
                let answer = try await api(method, path, body)
                #expect(answer.status == 400, "\(method) \(path.prefix(80)) \(body ?? ""): \(answer.text)")
                let error = try answer.json()["error"]
                #expect(error["field"].string == field, "\(method) \(path.prefix(80)) \(body ?? ""): \(answer.text)")
                #expect(error["rule"].string?.isEmpty == false)
            }
            let after = try await api.ok("GET", "rooms/r1")
            #expect(after["state"].string == before["state"].string && after["forbiddenUntil"].isNull && after["members"].int == 0)
            #expect(try await api.ok("GET", "rooms/r1/events")["list"].count == 1)
        }
    }

    @Test func whatIsNotThereIsNamed() async throws {
        try await UnboundServer.run { server in
            let api = try await CheckedAPI(server)
            for (method, path, body) in [
                ("GET", "rooms/none", nil), ("PATCH", "rooms/none", "{}"), ("DELETE", "rooms/none", nil), ("POST", "rooms/none/close", nil),
                ("POST", "rooms/none/expire", nil), ("POST", "rooms/none/renew", nil), ("POST", "rooms/none/heartbeat", nil),
                ("POST", "rooms/none/pause", nil),
                ("POST", "rooms/none/like", nil), ("POST", "rooms/none/forbid", nil), ("POST", "rooms/none/resume", nil),
                ("POST", "rooms/none/join", #"{"userId":"u"}"#), ("POST", "rooms/none/leave", #"{"userId":"u"}"#),
                ("GET", "rooms/none/members", nil),
                ("POST", "rooms/none/members/u/kick", nil), ("GET", "rooms/none/events", nil), ("POST", "rooms/none/push-url", nil),
                ("GET", "rooms/none/play-urls", nil), ("GET", "rooms/none/push-url.svg", nil), ("GET", "rooms/none/push-url.png", nil),
                ("GET", "streams/live/none/stats", nil), ("DELETE", "sessions/123456", nil),
                ("POST", "webhooks/deliveries/123456/redeliver", nil),
                ("DELETE", "tokens/123456", nil), ("POST", "events/ticket", #"{"roomId":"none"}"#),
            ] as [(String, String, String?)] {
                let error = try await api.refused(404, method, path, body)
                #expect(error["type"].string == "not_found", "\(method) \(path)")
                #expect(
                    error["value"].string?.contains("none") == true || error["value"].string?.contains("123456") == true,
                    "\(method) \(path)")
            }
        }
    }

    @Test func otherMethodsAreRefused() async throws {
        try await UnboundServer.run { server in
            let api = try await CheckedAPI(server)
            let put = try await api("PUT", "rooms/r1")
            #expect(put.status == 405)
            #expect(put.headers["allow"] == "GET, HEAD, PATCH, DELETE")
            #expect(try await api("OPTIONS", "rooms").status == 405)
            #expect(try await api("GET", "rooms/").status == 404)
            // The port takes the content off.
            let head = try await api.server.call("HEAD", "rooms")
            #expect(head.status == 200 && (head.headers["content-length"].flatMap { Int($0) } ?? 0) > 20)
            for path in ["/healthz", "/readyz/play"] {
                #expect(try await server.request("HEAD", path).status == 200)
            }
        }
    }

    @Test func bodiesOfOtherTypesAreRefused() async throws {
        try await UnboundServer.run { server in
            let api = try await CheckedAPI(server)
            for type in ["text/plain", "application/x-www-form-urlencoded", "application/xml"] {
                let error = try await api.refused(415, "POST", "rooms", "{}", headers: ["Content-Type": type])
                #expect(error["field"].string == "Content-Type")
                #expect(error["value"].string == type)
            }
            #expect(try await api.ok("GET", "rooms")["total"].int == 0)
        }
    }

    @Test func theLargestBodyIsRead() async throws {
        try await UnboundServer.run { server in
            let api = try await CheckedAPI(server)
            let space = String(repeating: " ", count: (64 << 10) - 2)
            try await api.ok("POST", "rooms", "{\(space)}", status: 201)
            try await api.refused(413, "POST", "rooms", "{\(space) }")
        }
    }

    @Test func badKeysAreRefused() async throws {
        try await UnboundServer.run { server in
            let api = try await CheckedAPI(server)
            for key in ["a b", String(repeating: "k", count: 129), "é"] {
                let error = try await api.refused(400, "POST", "rooms", headers: ["Idempotency-Key": key])
                #expect(error["field"].string == "Idempotency-Key")
            }
            #expect(try await api.ok("GET", "rooms")["total"].int == 0)
        }
    }
}
