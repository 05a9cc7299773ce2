import APITestSupport
import Foundation
import HTTPServer
import HTTPTypes
import Rooms
import ServerTestSupport
import TestSupport
import Testing

@testable import ControlAPI
@testable import HTTPAPI

/// ETag, If-Match and If-None-Match of rooms.
@Suite struct APIVersionTests {
    @Test func aChangeGoesByTheVersionThatWasSeen() async throws {
        try await UnboundServer.run { server in
            let api = try await CheckedAPI(server)
            let made = try await api("POST", "rooms", #"{"roomId":"r1"}"#)
            let first = try made.headers["etag"].orThrow()
            #expect(first.hasPrefix("\"") && first.hasSuffix("\""), "\(first)")
            #expect(try await api("GET", "rooms/r1").headers["etag"] == first)
            let version = try made.json()["data"]["version"].string.orThrow()
            let changed = try await api("PATCH", "rooms/r1", #"{"title":"one"}"#, headers: ["If-Match": first])
            let second = try changed.headers["etag"].orThrow()
            #expect(changed.status == 200 && second != first)
            // A second client saw the same version, and is late.
            let late = try await api("PATCH", "rooms/r1", #"{"title":"two"}"#, headers: ["If-Match": first])
            #expect(late.status == 412)
            let error = try late.json()["error"]
            let now = try changed.json()["data"]["version"].string.orThrow()
            #expect(error["type"].string == "precondition_failed" && error["field"].string == "If-Match")
            #expect(error["rule"].string == "expected \"\(now)\"", "\(late.text)")
            #expect(try await api.ok("GET", "rooms/r1")["title"].string == "one")
            for call in [("POST", "rooms/r1/close"), ("POST", "rooms/r1/forbid"), ("POST", "rooms/r1/renew"), ("DELETE", "rooms/r1")] {
                for tag in [first, "\"\(version)\"", "W/\(second)", "\"x\"", "\"\""] {
                    try await api.refused(412, call.0, call.1, headers: ["If-Match": tag])
                }
            }
            // If-Match accepts one tag of several, the bare version, or "*".
            try await api.ok("POST", "rooms/r1/renew", headers: ["If-Match": "\"x\" , \(second)"])
            let third = try await api.ok("GET", "rooms/r1")["version"].string.orThrow()
            let renewed = try await api.ok("POST", "rooms/r1/renew", headers: ["If-Match": "\"\(third)\""])
            #expect(renewed["version"].string != third)
            try await api.ok("POST", "rooms/r1/close", headers: ["If-Match": "*"])
            for bad in ["x", "\"", "\"a\" \"b\"", "\"a\",", "W/", "**", "\"a b\""] {
                let error = try await api.refused(400, "DELETE", "rooms/r1", headers: ["If-Match": bad])
                #expect(error["field"].string == "If-Match", "\(bad)")
            }
            // A missing room gives 404, whatever If-Match says.
            try await api.refused(404, "DELETE", "rooms/r2", headers: ["If-Match": "\"x\""])
            // Where nothing has a version, there is nothing to compare.
            for tag in ["\"x\"", "x"] { try await api.ok("POST", "rooms", status: 201, headers: ["If-Match": tag]) }
            try await api.ok("POST", "streams/live/x/forbid", headers: ["If-Match": "\"x\""])
            // A room's call that does not compare versions rejects the header.
            let aimless = try await api.refused(400, "POST", "rooms/r1/like", headers: ["If-Match": "\"x\""])
            #expect(aimless["field"].string == "If-Match" && aimless["rule"].string?.contains("does not support conditions") == true)
            try await api.ok("DELETE", "rooms/r1", headers: ["If-Match": try await api("GET", "rooms/r1").headers["etag"].orThrow()])
        }
    }

    @Test func whatIsKnownIsNotSentAgain() async throws {
        try await UnboundServer.run { server in
            let api = try await CheckedAPI(server)
            try await api.ok("POST", "rooms", #"{"roomId":"r1"}"#, status: 201)
            let tag = try await api("GET", "rooms/r1").headers["etag"].orThrow()
            for known in [tag, "W/\(tag)", "\"x\", \(tag)"] {
                let same = try await api("GET", "rooms/r1", headers: ["If-None-Match": known])
                #expect(same.status == 304 && same.body.isEmpty && same.headers["etag"] == tag, "\(known)")
                #expect(same.headers["content-length"] == nil && same.headers["content-type"] == nil)
            }
            #expect(try await api("GET", "rooms/r1", headers: ["If-None-Match": "*"]).status == 304)
            #expect(try await api("GET", "rooms/r1", headers: ["If-None-Match": "\"x\""]).status == 200)
            #expect(try await api("GET", "rooms/r1", headers: ["If-Match": "\"x\""]).status == 412)
            // A like changes the answer and its tag, but not the version: a change with the old tag still succeeds.
            try await api.ok("POST", "rooms/r1/like")
            let liked = try await api("GET", "rooms/r1", headers: ["If-None-Match": tag])
            #expect(liked.status == 200 && liked.headers["etag"] != tag)
            try await api.ok("PATCH", "rooms/r1", #"{"title":"x"}"#, headers: ["If-Match": tag])
        }
    }

    /// RFC 9110 §13.1.2: a change with If-None-Match fails if a listed version is the current one.
    @Test func aChangeIsNotMadeOfWhatItExcludes() async throws {
        try await UnboundServer.run { server in
            let api = try await CheckedAPI(server)
            let tag = try await api("POST", "rooms", #"{"roomId":"r1"}"#).headers["etag"].orThrow()
            let version = try await api.ok("GET", "rooms/r1")["version"].string.orThrow()
            for excluded in ["*", tag, "W/\(tag)", "\"x\", \"\(version)\""] {
                for call in [("PATCH", "rooms/r1", #"{"title":"two"}"#), ("POST", "rooms/r1/close", "{}"), ("DELETE", "rooms/r1", "")] {
                    let error = try await api.refused(
                        412, call.0, call.1, call.2.isEmpty ? nil : call.2, headers: ["If-None-Match": excluded])
                    #expect(error["field"].string == "If-None-Match" && error["type"].string == "precondition_failed", "\(excluded)")
                }
            }
            #expect(try await api.ok("GET", "rooms/r1")["version"].string == version)
            // Both conditions must hold.
            try await api.refused(412, "PATCH", "rooms/r1", #"{"title":"x"}"#, headers: ["If-Match": tag, "If-None-Match": "*"])
            try await api.refused(412, "PATCH", "rooms/r1", #"{"title":"x"}"#, headers: ["If-Match": "\"x\"", "If-None-Match": "\"y\""])
            try await api.ok("PATCH", "rooms/r1", #"{"title":"one"}"#, headers: ["If-Match": tag, "If-None-Match": "\"x\""])
            try await api.ok("PATCH", "rooms/r1", #"{"title":"two"}"#, headers: ["If-None-Match": tag])
            try await api.refused(404, "PATCH", "rooms/r2", #"{"title":"x"}"#, headers: ["If-None-Match": "*"])
            let bad = try await api.refused(400, "PATCH", "rooms/r1", #"{"title":"x"}"#, headers: ["If-None-Match": "x"])
            #expect(bad["field"].string == "If-None-Match")
            let aimless = try await api.refused(400, "POST", "rooms", headers: ["If-None-Match": "*"])
            #expect(aimless["field"].string == "If-None-Match" && aimless["rule"].string?.contains("does not support conditions") == true)
        }
    }

    /// A repetition gets the first answer with its tag, even after later changes.
    @Test func aRepetitionHasTheFirstAnswersTag() async throws {
        try await UnboundServer.run { server in
            let api = try await CheckedAPI(server)
            let made = try await api("POST", "rooms", #"{"roomId":"r1"}"#, headers: ["Idempotency-Key": "k1"])
            let tag = try made.headers["etag"].orThrow()
            let close = ["Idempotency-Key": "k2", "If-Match": tag]
            let closed = try await api("POST", "rooms/r1/close", "{}", headers: close)
            let again = try await api("POST", "rooms/r1/close", "{}", headers: close)
            #expect(closed.status == 200 && again.status == 200 && again.headers["idempotency-replayed"] == "true")
            #expect(again.headers["etag"] == closed.headers["etag"] && again.text == closed.text)
            let same = try await api("POST", "rooms", #"{"roomId":"r1"}"#, headers: ["Idempotency-Key": "k1"])
            #expect(same.headers["etag"] == tag && same.headers["location"] == "/api/v1/rooms/r1")
        }
    }

    @Test func tagsAreReadAsTheyAreWritten() throws {
        func tags(_ text: String) throws -> EntityTags? { try EntityTags([.ifMatch: text], .ifMatch) }
        #expect(try EntityTags([:], .ifMatch) == nil)
        #expect(try tags("*")?.tags == nil)
        #expect(try tags(#""a-b""#)?.tags == [.init(isWeak: false, opaque: "a-b")])
        #expect(try tags(#"W/"a", "b,c","""#)?.tags?.map(\.opaque) == ["a", "b,c", ""])
        #expect(EntityTags.Tag(isWeak: false, opaque: "kx.17-9f-gzip").version == "kx.17")
        for bad in [
            "", "a", #""a"#, #"a""#, #""a" "b""#, #""a","#, #","a""#, #"w/"a""#, "\"é\"", "\"\(String(repeating: "x", count: 5_000))\"",
        ] {
            #expect(throws: APIError.self, "\(bad.prefix(20))") { try tags(bad) }
        }
        // The document's pattern agrees.
        let pattern = try Regex(EntityTags.pattern)
        for good in ["*", #""a-b""#, #"W/"a", "b,c","""#] { #expect(try pattern.wholeMatch(in: good) != nil, "\(good)") }
        for bad in ["", "a", #""a"#, #""a" "b""#, #""a","#, #"w/"a""#] { #expect(try pattern.wholeMatch(in: bad) == nil, "\(bad)") }
    }
}
