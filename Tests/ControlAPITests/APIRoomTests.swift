import APITestSupport
import Foundation
import Rooms
import ServerTestSupport
import TestSupport
import Testing

/// Rooms through the API of a running server. Every answer is checked against the served document.
@Suite struct APIRoomTests {
    @Test func aRoomIsCreatedLookedUpChangedAndDeleted() async throws {
        try await UnboundServer.run { server in
            let api = try await CheckedAPI(server)
            let body = #"""
                {"roomId":"r1","slots":2,"owner":"u1","title":"Café ☃","custom":{"b":[1,2.5,null],"a":"x"},"isPublic":false,
                 "policy":{"grace":45.5,"heartbeatMisses":5}}
                """#
            let made = try await api("POST", "rooms", body)
            #expect(made.status == 201)
            #expect(made.headers["location"] == "/api/v1/rooms/r1")
            let room = try made.json()["data"]
            #expect(room["roomId"].string == "r1")
            #expect(room["instance"].int == 1)
            #expect(room["state"].string == "created")
            #expect(room["stateReason"].string == "created")
            #expect(room["liveStatus"].int == 0)
            #expect(room["owner"].string == "u1")
            #expect(room["title"].string == "Café ☃")
            #expect(room["custom"]["b"].count == 3)
            #expect(room["custom"]["a"].string == "x")
            #expect(room["isPublic"].bool == false)
            #expect(room["isAdHoc"].bool == false)
            #expect(room["deviceUid"].isNull)
            #expect(room["policy"]["grace"].double == 45.5)
            #expect(room["policy"]["heartbeatMisses"].int == 5)
            #expect(room["policy"]["neverStarted"].double == 300)
            #expect(room["streams"].list.map(\.["name"].string) == ["r1", "r1-2"])
            #expect(room["playUrls"]["rtmp"].string == "\(server.rtmp)/live/r1")
            #expect(room["streams"][1]["playUrls"]["rtmp"].string == "\(server.rtmp)/live/r1-2")
            #expect(room["playUrls"]["rtmps"].isNull)
            #expect(room["snapshotUrl"].isNull && room["liveSince"].isNull && room["endedAt"].isNull && room["forbiddenUntil"].isNull)
            #expect(room["online"].int == 0 && room["likes"].int == 0 && room["members"].int == 0)
            let (created, expires) = (room["createdAt"].ms, room["expiresAt"].ms)
            #expect(expires - created == 300_000)
            #expect(room["since"].string == room["createdAt"].string)

            let seen = try await api.ok("GET", "rooms/r1")
            #expect(seen["title"].string == "Café ☃")
            let changed = try await api.ok(
                "PATCH", "rooms/r1", #"{"owner":null,"title":"","custom":{},"isPublic":true,"deviceUid":"d1","policy":{"grace":1}}"#)
            #expect(changed["owner"].isNull)
            #expect(changed["title"].string == "")
            #expect(changed["custom"].names.isEmpty)
            #expect(changed["isPublic"].bool == true)
            #expect(changed["deviceUid"].string == "d1")
            #expect(changed["policy"]["grace"].int == 1)
            #expect(changed["policy"]["heartbeatMisses"].int == 5)
            let same = try await api.ok("PATCH", "rooms/r1", "{}")
            #expect(same["deviceUid"].string == "d1")

            #expect(try await api.ok("DELETE", "rooms/r1").isNull)
            try await api.refused(404, "GET", "rooms/r1")
            try await api.refused(404, "DELETE", "rooms/r1")
            let events = try await api.ok("GET", "rooms/r1/events")
            #expect(events["list"].list.map(\.["kind"].string).last == "room.deleted")
            #expect(events["list"].list.map(\.["number"].int) == (1...events["list"].count).map(Optional.some))
            // The same, from its end.
            let ids = events["list"].list.compactMap(\.["id"].int)
            let newest = try await api.ok("GET", "rooms/r1/events?before=\(Int.max)&limit=2")
            #expect(newest["list"].list.compactMap(\.["id"].int) == ids.suffix(2).reversed() && newest["isComplete"].bool == false)
            let rest = try await api.ok("GET", "rooms/r1/events?before=\(newest["last"].int ?? 0)")
            #expect(rest["list"].list.compactMap(\.["id"].int) == ids.dropLast(2).reversed() && rest["isComplete"].bool == true)
            try await api.refused(400, "GET", "rooms/r1/events?before=5&after=2")
        }
    }

    @Test func anEmptyBodyMakesARoom() async throws {
        try await UnboundServer.run { server in
            let api = try await CheckedAPI(server)
            let first = try await api.ok("POST", "rooms", status: 201)
            let second = try await api.ok("POST", "rooms", "{}", status: 201)
            #expect(first["roomId"].string != second["roomId"].string)
            #expect(try await api.ok("GET", "rooms")["total"].int == 2)
        }
    }

    @Test func roomsAreListedByFiltersAndPages() async throws {
        try await UnboundServer.run { server in
            let api = try await CheckedAPI(server)
            for index in 0..<25 {
                let title = index % 5 == 0 ? "harbour view \(index)" : "room number \(index)"
                try await api.ok(
                    "POST", "rooms", #"{"roomId":"r\#(index)","title":"\#(title)","owner":"u\#(index % 3)","isPublic":\#(index % 2 == 0)}"#,
                    status: 201)
            }
            try await api.ok("POST", "rooms/r3/close")
            let all = try await api.ok("GET", "rooms")
            #expect(all["total"].int == 25)
            #expect(all["list"].count == 20)
            #expect(all["list"][0]["roomId"].string == "r24")
            let rest = try await api.ok("GET", "rooms?after=\(all["next"].string.orThrow())")
            #expect(rest["list"].list.map(\.["roomId"].string) == ["r4", "r3", "r2", "r1", "r0"])
            #expect(rest["next"].isNull)
            let second = try await api.ok("GET", "rooms?page=2&pageSize=20")
            #expect(second["list"].list.map(\.["roomId"].string) == ["r4", "r3", "r2", "r1", "r0"])
            #expect(try await api.ok("GET", "rooms?page=3")["list"].count == 0)
            let oldest = try await api.ok("GET", "rooms?sort=createdAt&pageSize=2")
            #expect(oldest["list"].list.map(\.["roomId"].string) == ["r0", "r1"])
            let byTitle = try await api.ok("GET", "rooms?sort=-title&pageSize=1")
            #expect(byTitle["list"][0]["title"].string?.hasPrefix("room number") == true)
            #expect(try await api.ok("GET", "rooms?state=closed")["total"].int == 1)
            #expect(try await api.ok("GET", "rooms?state=created")["total"].int == 24)
            #expect(try await api.ok("GET", "rooms?owner=u0")["total"].int == 9)
            #expect(try await api.ok("GET", "rooms?isPublic=true")["total"].int == 13)
            let found = try await api.ok("GET", "rooms?q=HARBOUR%20vie&pageSize=200")
            #expect(found["total"].int == 5)
            #expect(found["totalIsCapped"].bool == false)
            #expect(try await api.ok("GET", "rooms?q=nothing")["total"].int == 0)
        }
    }

    /// A search text is plain text, never query syntax.
    @Test func searchTextIsNoSyntax() async throws {
        try await UnboundServer.run { server in
            let api = try await CheckedAPI(server)
            try await api.ok("POST", "rooms", #"{"roomId":"r1","title":"plain"}"#, status: 201)
            for text in [
                "'", "\"", "' OR 1=1 --", "\"; DROP TABLE rooms; --", "*", "a*", "NEAR(a b)", "title:plain", "a AND b", "-plain", "^plain",
                "{a}", "(", ")",
                "%", "_", "\\", "plain\" OR \"a", "../../etc/passwd", "☃", "𝕏", "\u{202E}x",
            ] {
                let encoded = try text.addingPercentEncoding(withAllowedCharacters: .alphanumerics).orThrow()
                let found = try await api.ok("GET", "rooms?q=\(encoded)")
                #expect((found["total"].int ?? -1) <= 1, "\(text)")
            }
            #expect(try await api.ok("GET", "rooms")["total"].int == 1)
        }
    }

    /// Texts come back unchanged, whatever they contain.
    @Test func textsAreKeptAsTheyAre() async throws {
        try await UnboundServer.run { server in
            let api = try await CheckedAPI(server)
            for (index, text) in [
                "'; DROP TABLE rooms; --", "\\\"quoted\\\"", "../../../etc/passwd", "<script>alert(1)</script>", "%00%2e%2e/",
                "${jndi:ldap://x}", "{{7*7}}",
                "\\u0041\\u00e9\\ud83d\\ude00", "$(reboot)`id`", "a\\\\b", "  spaces  ", "",
            ].enumerated() {
                let decoded = try JSON(JSONSerialization.jsonObject(with: Data("[\"\(text)\"]".utf8)))[0].string
                let made = try await api.ok(
                    "POST", "rooms", "{\"roomId\":\"t\(index)\",\"title\":\"\(text)\",\"custom\":{\"x\":\"\(text)\"}}", status: 201)
                #expect(made["title"].string == decoded)
                #expect(try await api.ok("GET", "rooms/t\(index)")["custom"]["x"].string == decoded)
            }
            #expect(try await api.ok("GET", "rooms")["total"].int == 12)
        }
    }

    @Test func aDeviceOpensItsRoomAgainAndAgain() async throws {
        try await UnboundServer.run { server in
            let api = try await CheckedAPI(server)
            let first = try await api.ok("POST", "rooms", #"{"deviceUid":"dev-1","title":"one"}"#, status: 201)
            let id = try first["roomId"].string.orThrow()
            let taken = try await api.refused(409, "POST", "rooms", #"{"deviceUid":"dev-1"}"#)
            #expect(taken["type"].string == "conflict")
            #expect(taken["field"].string == "deviceUid" && taken["roomId"].string == id)
            try await api.ok("POST", "rooms/\(id)/close")
            let again = try await api.ok("POST", "rooms", #"{"deviceUid":"dev-1","title":"two"}"#, status: 201)
            #expect(again["roomId"].string == id)
            #expect(again["instance"].int == 2)
            #expect(again["title"].string == "two")
            try await api.ok("POST", "rooms", #"{"roomId":"r9"}"#, status: 201)
            let bound = try await api.refused(409, "PATCH", "rooms/r9", #"{"deviceUid":"dev-1"}"#)
            #expect(bound["field"].string == "deviceUid" && bound["roomId"].string == id)
            // A device's name and a stream's must not be one.
            let hidden = try await api.refused(409, "POST", "rooms", #"{"roomId":"dev-1"}"#)
            #expect(hidden["field"].string == "roomId" && hidden["roomId"].string == id)
            let named = try await api.refused(409, "PATCH", "rooms/r9", #"{"deviceUid":"\#(id)"}"#)
            #expect(named["field"].string == "deviceUid" && named["roomId"].string == id)
            #expect(try await api.ok("GET", "rooms?deviceUid=dev-1")["list"].list.map(\.["roomId"].string) == [id])
        }
    }

    @Test func idsInUseAreRefused() async throws {
        try await UnboundServer.run { server in
            let api = try await CheckedAPI(server)
            try await api.ok("POST", "rooms", #"{"roomId":"r1"}"#, status: 201)
            let open = try await api.refused(409, "POST", "rooms", #"{"roomId":"r1"}"#)
            #expect(open["state"].string == "created")
            #expect(open["field"].string == "roomId")
            try await api.ok("POST", "rooms/r1/close")
            let answer = try await api("POST", "rooms", #"{"roomId":"r1"}"#)
            #expect(answer.status == 409)
            #expect(try answer.json()["message"].string?.contains("is free from 20") == true, "\(answer.text)")
            // Slot 2 of room "x" would be "x-2".
            try await api.ok("POST", "rooms", #"{"roomId":"x-2"}"#, status: 201)
            let stream = try await api.refused(400, "POST", "rooms", #"{"roomId":"x","slots":2}"#)
            #expect(stream["field"].string == "roomId")
        }
    }

    @Test func membersComeAndGo() async throws {
        try await UnboundServer.run { server in
            let api = try await CheckedAPI(server)
            try await api.ok("POST", "rooms", #"{"roomId":"r1"}"#, status: 201)
            let member = try await api.ok("POST", "rooms/r1/join", #"{"userId":"u1","nick":"Ann"}"#)
            #expect(member["userId"].string == "u1")
            #expect(member["nick"].string == "Ann")
            for index in 2...5 { try await api.ok("POST", "rooms/r1/join", #"{"userId":"u\#(index)"}"#) }
            // The same member again.
            try await api.ok("POST", "rooms/r1/join", #"{"userId":"u1","nick":"Anna"}"#)
            let room = try await api.ok("GET", "rooms/r1")
            #expect(room["members"].int == 5)
            #expect(room["online"].int == 5)
            let page = try await api.ok("GET", "rooms/r1/members?limit=3")
            #expect(page["total"].int == 5)
            #expect(page["list"].list.map(\.["userId"].string) == ["u1", "u2", "u3"])
            #expect(page["list"][0]["nick"].string == "Anna")
            let rest = try await api.ok("GET", "rooms/r1/members?limit=3&after=\(page["next"].string.orThrow())")
            #expect(rest["list"].list.map(\.["userId"].string) == ["u4", "u5"])
            #expect(rest["next"].isNull)
            try await api.ok("POST", "rooms/r1/leave", #"{"userId":"u2"}"#)
            try await api.refused(404, "POST", "rooms/r1/leave", #"{"userId":"u2"}"#)
            try await api.ok("POST", "rooms/r1/members/u3/kick")
            try await api.refused(404, "POST", "rooms/r1/members/u3/kick")
            #expect(try await api.ok("GET", "rooms/r1")["members"].int == 3)
            let events = try await api.ok("GET", "rooms/r1/events")["list"].list.map(\.["kind"].string)
            #expect(events.suffix(2) == ["member.leave", "member.kick"])
            try await api.ok("POST", "rooms/r1/close")
            let closed = try await api.refused(409, "POST", "rooms/r1/join", #"{"userId":"u9"}"#)
            #expect(closed["state"].string == "closed")
            #expect(closed["allowed"].count > 0)
        }
    }

    @Test func likesAreCounted() async throws {
        try await UnboundServer.run { server in
            let api = try await CheckedAPI(server)
            try await api.ok("POST", "rooms", #"{"roomId":"r1"}"#, status: 201)
            #expect(try await api.ok("POST", "rooms/r1/like")["likes"].int == 1)
            #expect(try await api.ok("POST", "rooms/r1/like", #"{"count":100}"#)["likes"].int == 101)
            for count in ["0", "101", "1.5", "-1", "\"1\"", "null"] {
                try await api.refused(400, "POST", "rooms/r1/like", "{\"count\":\(count)}")
            }
        }
    }

    @Test func timeIsGivenAndTaken() async throws {
        try await UnboundServer.run { server in
            let api = try await CheckedAPI(server)
            let made = try await api.ok("POST", "rooms", #"{"roomId":"r1","policy":{"neverStarted":100}}"#, status: 201)
            let renewed = try await api.ok("POST", "rooms/r1/renew", #"{"seconds":1000}"#)
            #expect(renewed["expiresAt"].ms > made["expiresAt"].ms)
            try await api.ok("POST", "rooms/r1/renew")
            let beat = try await api.ok("POST", "rooms/r1/heartbeat", #"{"userId":"u1"}"#)
            #expect(beat["state"].string == "created")
            try await api.ok("POST", "rooms/r1/heartbeat")
            let paused = try await api.refused(409, "POST", "rooms/r1/pause")
            #expect(paused["state"].string == "created")
            let expired = try await api.ok("POST", "rooms/r1/expire")
            #expect(expired["state"].string == "expired")
            #expect(expired["stateReason"].string == "expired")
            let twice = try await api.refused(409, "POST", "rooms/r1/expire")
            #expect(twice["type"].string == "wrong_state")
            #expect(twice["state"].string == "expired")
            #expect(twice["allowed"].list.contains { $0.string == "created" })
        }
    }

    @Test func aForbiddenRoomIsResumed() async throws {
        try await UnboundServer.run { server in
            let api = try await CheckedAPI(server)
            try await api.ok("POST", "rooms", #"{"roomId":"r1"}"#, status: 201)
            let banned = try await api.ok("POST", "rooms/r1/forbid", #"{"reason":"no \"fun\" here"}"#)
            #expect(banned["state"].string == "forbidden")
            #expect(banned["liveStatus"].int == 2)
            #expect(banned["forbidReason"].string == "no \"fun\" here")
            let days = Double(banned["forbiddenUntil"].ms - banned["createdAt"].ms) / 86_400_000
            #expect((6.99...7.01).contains(days), "\(days)")
            let state = try await api.ok("GET", "streams/live/r1")
            #expect(state["state"].string == "forbid")
            #expect(state["forbid"]["reason"].string == "no \"fun\" here")
            #expect(try await api.ok("GET", "streams/forbidden")["total"].int == 1)
            // Again: another end and reason.
            let longer = try await api.ok("POST", "rooms/r1/forbid", #"{"seconds":2592000,"reason":"still"}"#)
            let moved = Double(longer["forbiddenUntil"].ms - longer["createdAt"].ms) / 86_400_000
            #expect(longer["forbidReason"].string == "still" && (29.99...30.01).contains(moved), "\(moved)")
            let kinds = try await api.ok("GET", "rooms/r1/events")["list"].list.map(\.["kind"].string)
            #expect(kinds == ["room.created", "stream.forbidden", "room.forbidden", "stream.forbidden"])
            let resumed = try await api.ok("POST", "rooms/r1/resume")
            #expect(resumed["state"].string == "created")
            #expect(resumed["forbiddenUntil"].isNull)
            let twice = try await api.refused(409, "POST", "rooms/r1/resume")
            #expect(twice["allowed"].list.map(\.string) == ["forbidden"])
            #expect(try await api.ok("GET", "streams/forbidden")["total"].int == 0)
        }
    }

    /// An ended room refuses each action. The error names the state, and the states that allow the action.
    @Test func endedRoomsRefuse() async throws {
        try await UnboundServer.run { server in
            let api = try await CheckedAPI(server)
            try await api.ok("POST", "rooms", #"{"roomId":"r1"}"#, status: 201)
            try await api.ok("POST", "rooms/r1/close")
            for action in ["expire", "renew", "heartbeat", "pause", "forbid", "resume", "push-url"] {
                let error = try await api.refused(409, "POST", "rooms/r1/\(action)")
                #expect(error["type"].string == "wrong_state", "\(action)")
                #expect(error["state"].string == "closed", "\(action)")
                #expect(error["allowed"].count > 0, "\(action)")
            }
            try await api.refused(409, "GET", "rooms/r1/push-url.svg")
            #expect(try await api.ok("GET", "rooms/r1")["state"].string == "closed")
        }
    }
}
