import APITestSupport
import EarshotServer
import Foundation
import HTTPTypes
import Rooms
import ServerTestSupport
import Support
import TestSupport
import Testing

@testable import ControlAPI
@testable import HTTPAPI

/// Names and lengths of inputs. Document and server must agree on them.
@Suite struct APINameTests {
    // MARK: - Names

    @Test func theEndOfABanHasOneName() async throws {
        try await UnboundServer.run { server in
            let api = try await CheckedAPI(server)
            let until = "2030-01-01T00:00:00.000Z"
            let soon = Instant.text(WallClock.ms / 1_000 * 1_000 + 3_600_000)
            try await api.ok("POST", "rooms", #"{"roomId":"r1"}"#, status: 201)
            let room = try await api.ok("POST", "rooms/r1/forbid", #"{"forbiddenUntil":"\#(soon)"}"#)
            #expect(room["forbiddenUntil"].string == soon)
            let ban = try await api.ok("POST", "streams/live/r1/forbid", #"{"forbiddenUntil":"\#(soon)"}"#)
            #expect(ban["forbiddenUntil"].string == soon && ban["resumeAt"].string == nil)
            #expect(try await api.ok("GET", "streams/live/r1")["forbid"]["forbiddenUntil"].string == soon)
            let far = try await api.refused(400, "POST", "streams/live/r1/forbid", #"{"forbiddenUntil":"\#(until)"}"#)
            #expect(far["field"].string == "forbiddenUntil")
            let twice = try await api.refused(
                400, "POST", "streams/live/x/forbid", #"{"forbiddenUntil":"\#(soon)","forbiddenUntil":"\#(soon)"}"#)
            #expect(twice["field"].string == "forbiddenUntil" || twice["field"].string == "body")
            let events = try await api.ok("GET", "events?roomId=r1")["list"].list
            #expect(events.contains { $0["kind"].string == "room.forbidden" && $0["data"]["forbiddenUntil"].string == soon })
            #expect(!events.contains { !$0["data"]["resumeAt"].isNull && $0["data"]["resumeAt"].string != nil })
        }
    }

    @Test func aRoomIsFilteredByByItsOneName() async throws {
        try await UnboundServer.run { server in
            let api = try await CheckedAPI(server)
            for id in ["r1", "r2"] { try await api.ok("POST", "rooms", #"{"roomId":"\#(id)"}"#, status: 201) }
            for path in ["events", "webhooks/deliveries", "recordings"] {
                try await api.ok("GET", "\(path)?roomId=r1")
                let other = try await api.refused(400, "GET", "\(path)?room=r1")
                #expect(other["field"].string == "room" && other["rule"].string?.contains("roomId") == true)
            }
            #expect(try await api.ok("GET", "events?roomId=r1")["list"].count == 1)
            #expect(try EventsQuery("roomId=r1").room == "r1")
            #expect(throws: FieldError.self) { try EventsQuery("room=r1") }
            #expect(throws: FieldError.self) { try EventsQuery("roomId=r1&roomId=r1") }
        }
    }

    @Test func noTwoInputsShareAName() {
        for route in APIRoute.all {
            for form in [route.query, route.body ?? .empty] {
                let names = form.inputs.map(\.name)
                #expect(Set(names).count == names.count, "\(route.name)")
            }
        }
    }

    // MARK: - Lists

    @Test func roomsAreFilteredByVisibilityAndStates() async throws {
        try await UnboundServer.run { server in
            let api = try await CheckedAPI(server)
            for (id, isPublic) in [("a", true), ("b", false), ("c", false), ("d", true)] {
                try await api.ok("POST", "rooms", #"{"roomId":"\#(id)","isPublic":\#(isPublic)}"#, status: 201)
            }
            try await api.ok("POST", "rooms/c/close")
            try await api.ok("POST", "rooms/d/expire")
            func ids(_ query: String) async throws -> [String] {
                let page = try await api.ok("GET", "rooms?sort=id&\(query)")
                #expect(page["total"].int == page["list"].count)
                return page["list"].list.compactMap { $0["roomId"].string }
            }
            for (query, expected) in [
                ("isPublic=true", ["a", "d"]), ("isPublic=false", ["b", "c"]), ("state=created", ["a", "b"]),
                ("state=closed,expired", ["c", "d"]), ("state=expired%2Ccreated&isPublic=true", ["a", "d"]),
                ("state=created,live,interrupted,forbidden,expired,closed", ["a", "b", "c", "d"]), ("state=closed,created&q=c", ["c"]),
                ("isPublic=false&q=a", []),
            ] {
                #expect(try await ids(query) == expected, "\(query)")
            }
            for bad in ["", ",", "live,", "live,live", "live,alive", "live interrupted"] {
                let encoded = bad.replacingOccurrences(of: " ", with: "%20")
                let error = try await api.refused(400, "GET", "rooms?state=\(encoded)")
                #expect(error["field"].string == "state", "\(bad)")
                // The error's value is the rejected state alone.
                let word = bad == "live,alive" ? "alive" : bad
                #expect(error["value"].string == (word.isEmpty ? nil : word), "\(error)")
            }
            let bogus = try await api("GET", "rooms?state=bogus")
            let message = try bogus.json()["message"].string ?? ""
            #expect(bogus.status == 400 && message.hasPrefix("state is \"bogus\": expected one or more of"), "\(message)")
        }
    }

    // MARK: - Renewal, and rooms whose time is over

    @Test func aRenewalSaysWhichDeadlineComesFirst() async throws {
        try await UnboundServer.run { server in
            let api = try await CheckedAPI(server)
            try await api.ok("POST", "rooms", #"{"roomId":"r1"}"#, status: 201)
            let alone = try await api.ok("POST", "rooms/r1/renew", #"{"seconds":1000}"#)
            #expect(alone["expiresAt"].string == alone["renewedUntil"].string && alone["expiresReason"].string == "neverStarted")
            let beat = try await api.ok("POST", "rooms/r1/heartbeat")
            let held = try await api.ok("POST", "rooms/r1/renew", #"{"seconds":1000}"#)
            #expect(held["expiresReason"].string == "heartbeatLost" && held["expiresAt"].string == beat["expiresAt"].string)
            #expect(held["renewedUntil"].ms - held["createdAt"].ms == 2_300_000)
            #expect(held["expiresAt"].ms < held["renewedUntil"].ms)
        }
    }

    @Test func anExpiredRoomIsClosedOrForbidden() async throws {
        try await UnboundServer.run { server in
            let api = try await CheckedAPI(server)
            for id in ["r1", "r2"] {
                try await api.ok("POST", "rooms", #"{"roomId":"\#(id)","deviceUid":"dev-\#(id)"}"#, status: 201)
                try await api.ok("POST", "rooms/\(id)/expire")
            }
            let closed = try await api.ok("POST", "rooms/r1/close")
            #expect(closed["state"].string == "closed")
            let twice = try await api.ok("POST", "rooms/r1/close")
            #expect(twice["state"].string == "closed" && twice["version"].string == closed["version"].string)
            let banned = try await api.ok("POST", "rooms/r2/forbid")
            #expect(banned["state"].string == "forbidden" && banned["instance"].int == 2 && banned["endedAt"].isNull)
            #expect(banned["expiresReason"].string == "resumeTime")
            let resumed = try await api.ok("POST", "rooms/r2/resume")
            #expect(resumed["state"].string == "created" && resumed["expiresReason"].string == "neverStarted")
            let kinds = try await api.ok("GET", "rooms/r2/events")["list"].list.map(\.["kind"].string)
            #expect(kinds == ["room.created", "room.expired", "stream.forbidden", "room.forbidden", "stream.resumed", "room.unforbidden"])
        }
    }

    // MARK: - Lengths and digits

    /// Characters of one, two, three and four UTF-8 bytes.
    private static let characters = ["a", "é", "門", "😀"]

    /// Every text with a maxLength accepts that many characters and not one more. Their bytes do not count.
    @Test func documentAndServerCountTheSameLengths() throws {
        var checked: Set<String> = []
        for route in APIRoute.all {
            for input in route.pathForm.inputs + route.query.inputs + (route.body?.inputs ?? []) {
                var components: [String: JSONValue] = [:]
                let schema = input.schema.json(&components)
                guard case .integer(let most)? = schema["maxLength"] else { continue }
                let least = schema["minLength"]?.double.map { Int($0) } ?? 0
                for character in Self.characters {
                    let name = "\(route.name) \(input.name) \(character)"
                    func isTaken(_ count: Int) -> Bool {
                        (try? input.read(.string(String(repeating: character, count: count)))) != nil
                    }
                    #expect(isTaken(Int(most)) && isTaken(least), "\(name)")
                    #expect(!isTaken(Int(most) + 1) && (least == 0 || !isTaken(least - 1)), "\(name)")
                }
                checked.insert(input.name)
            }
        }
        #expect(checked.isSuperset(of: ["title", "nick", "reason", "q", "name", "app", "url", "after", "stream"]), "\(checked)")
    }

    /// The same through the store, which counts the lengths itself.
    @Test func theStoreTakesTextsOfFullLength() async throws {
        try await UnboundServer.run { server in
            let api = try await CheckedAPI(server)
            for (index, character) in Self.characters.enumerated() {
                func text(_ count: Int) -> String { String(repeating: character, count: count) }
                func encoded(_ count: Int) throws -> String {
                    try text(count).addingPercentEncoding(withAllowedCharacters: .alphanumerics).orThrow()
                }
                let room = try await api.ok("POST", "rooms", #"{"roomId":"r\#(index)","title":"\#(text(200))"}"#, status: 201)
                #expect(room["title"].string == text(200))
                try await api.refused(400, "POST", "rooms", #"{"title":"\#(text(201))"}"#)
                try await api.ok(
                    "PATCH", "rooms/r\(index)", #"{"title":"\#(text(200))!"}"#.replacingOccurrences(of: "\(character)!", with: "!"))
                let member = try await api.ok("POST", "rooms/r\(index)/join", #"{"userId":"u","nick":"\#(text(100))"}"#)
                #expect(member["nick"].string == text(100))
                try await api.refused(400, "POST", "rooms/r\(index)/join", #"{"userId":"u","nick":"\#(text(101))"}"#)
                let token = try await api.ok("POST", "tokens", #"{"name":"\#(text(64))","role":"backend"}"#, status: 201)
                #expect(token["name"].string == text(64))
                try await api.refused(400, "POST", "tokens", #"{"name":"\#(text(65))","role":"backend"}"#)
                try await api.ok("GET", "rooms?q=\(encoded(200))")
                try await api.refused(400, "GET", "rooms?q=\(encoded(201))")
                let ban = try await api.ok("POST", "streams/live/\(encoded(255))/forbid", #"{"reason":"\#(text(2_048))"}"#)
                #expect(ban["name"].string == text(255) && ban["reason"].string == text(2_048))
                try await api.refused(400, "POST", "streams/live/\(encoded(256))/forbid")
                try await api.refused(400, "POST", "streams/live/x/forbid", #"{"reason":"\#(text(2_049))"}"#)
                let apps = try await api.ok("POST", "streams/\(encoded(255))/x/forbid")
                #expect(apps["app"].string == text(255))
            }
            // Cursors of pages are long enough for these texts.
            for path in ["rooms?sort=title&pageSize=1", "streams/forbidden?limit=1"] {
                var seen = 0
                var next: String?
                repeat {
                    let page = try await api.ok("GET", path + (next.map { "&after=\($0)" } ?? ""))
                    seen += page["list"].count
                    next = page["next"].string
                } while next != nil && seen < 100
                #expect(seen == (path.hasPrefix("rooms") ? 4 : 8), "\(path)")
            }
        }
    }
}
