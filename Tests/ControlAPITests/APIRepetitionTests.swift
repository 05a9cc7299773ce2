import APITestSupport
import EarshotServer
import Foundation
import HTTPTypes
import ServerTestSupport
import Support
import TestSupport
import Testing

@testable import ControlAPI
@testable import HTTPAPI
@testable import ServerConfiguration

/// The same request repeated, in sequence or concurrently.
@Suite struct APIRepetitionTests {
    @Test func aKeyMakesARequestHappenOnce() async throws {
        try await UnboundServer.run { server in
            let api = try await CheckedAPI(server)
            let key = ["Idempotency-Key": "order-1"]
            let first = try await api("POST", "rooms", #"{"title":"one"}"#, headers: key)
            #expect(first.status == 201)
            #expect(first.headers["idempotency-replayed"] == nil)
            let again = try await api("POST", "rooms", #"{"title":"one"}"#, headers: key)
            #expect(again.status == 201)
            #expect(again.headers["idempotency-replayed"] == "true")
            #expect(again.body == first.body)
            #expect(again.headers["location"] == first.headers["location"])
            #expect(try await api.ok("GET", "rooms")["total"].int == 1)
            // Another body, path or query is another request.
            for (path, body) in [("rooms", #"{"title":"two"}"#), ("rooms", "{}"), ("rooms/x/close", "{}"), ("rooms/x/close", nil)]
                as [(String, String?)]
            {
                let error = try await api.refused(422, "POST", path, body, headers: key)
                #expect(error["field"].string == "Idempotency-Key")
            }
            // Another token's key is another key.
            let other = try await api.ok("POST", "tokens", #"{"name":"x","role":"backend"}"#, status: 201)["secret"].string.orThrow()
            #expect(try await api("POST", "rooms", #"{"title":"two"}"#, token: other, headers: key).status == 201)
            #expect(try await api.ok("GET", "rooms")["total"].int == 2)
        }
    }

    /// A refused request changed nothing, so its repetition is judged anew.
    @Test func refusalsAreNotKept() async throws {
        try await UnboundServer.run { server in
            let api = try await CheckedAPI(server)
            let key = ["Idempotency-Key": "k"]
            try await api.refused(404, "POST", "rooms/r1/close", headers: key)
            try await api.ok("POST", "rooms", #"{"roomId":"r1"}"#, status: 201)
            try await api.ok("POST", "rooms/r1/close", headers: key)
            let replayed = try await api("POST", "rooms/r1/close", headers: key)
            #expect(replayed.status == 200)
            #expect(replayed.headers["idempotency-replayed"] == "true")
            try await api.refused(409, "POST", "rooms/r1/expire")
        }
    }

    /// The answer is stored in the effect's transaction: if it cannot be stored, there is no effect.
    @Test(arguments: [
        ("rooms", #"{"title":"one"}"#), ("rooms/r1/like", "{}"), ("rooms/r1/close", "{}"), ("rooms/r1/forbid", "{}"),
        ("rooms/r1/renew", "{}"), ("rooms/r1/join", #"{"userId":"ann"}"#), ("rooms/r1/leave", #"{"userId":"bob"}"#),
        ("rooms/r1/members/bob/kick", "{}"), ("tokens", #"{"name":"x","role":"backend"}"#), ("streams/live/s2/forbid", "{}"),
        ("streams/live/s1/resume", "{}"), ("rooms/r1/talk/members/ann/mute", #"{"muted":true}"#),
        ("rooms/r1/talk/members/ann/kick", #"{"seconds":60}"#), ("rooms/r1/talk/members/bob/allow", "{}"),
        ("links", #"{"direction":"pull","app":"live","name":"p1","url":"rtmp://127.0.0.1:9/live/x","onDemand":true}"#),
    ]) func withoutItsAnswerNothingIsDone(_ path: String, _ body: String) async throws {
        let loopback = [try CIDR(parsing: "127.0.0.0/8")]
        try await UnboundServer.run({
            $0.talk.always = true
            $0.outbound.allowPrivate = loopback
        }) { server in
            let api = try await CheckedAPI(server)
            try await api.ok("POST", "rooms", #"{"roomId":"r1"}"#, status: 201)
            try await api.ok("POST", "rooms/r1/join", #"{"userId":"bob"}"#)
            try await api.ok("POST", "streams/live/s1/forbid", "{}")
            func state() async throws -> [Data] {
                var texts: [Data] = []
                for path in ["rooms", "rooms/r1/members", "tokens", "streams/forbidden", "rooms/r1/talk", "links", "rooms/r1/events"] {
                    let data = try await api.ok("GET", path).value.orThrow()
                    texts.append(try JSONSerialization.data(withJSONObject: data, options: .sortedKeys))
                }
                return texts
            }
            let before = try await state()
            let key = ["Idempotency-Key": "k"]
            try await server.changeStore(StoreTrigger.noAnswers)
            let refused = try await api("POST", path, body, headers: key)
            #expect(refused.status == 503, "\(refused.text)")
            #expect(try await state() == before)
            try await server.changeStore("DROP TRIGGER no_answers")
            let first = try await api("POST", path, body, headers: key)
            #expect(first.status < 300 && first.headers["idempotency-replayed"] == nil, "\(first.text)")
            let again = try await api("POST", path, body, headers: key)
            #expect(again.status == first.status && again.headers["idempotency-replayed"] == "true")
            if path != "tokens" { #expect(again.body == first.body) }
        }
    }

    /// An effect on live connections cannot be rolled back: the caller gets its answer even if it could not be stored.
    @Test func aLiveEffectIsToldAnyway() async throws {
        try await UnboundServer.run { server in
            let api = try await CheckedAPI(server)
            let key = ["Idempotency-Key": "k"]
            try await server.changeStore(StoreTrigger.noAnswers)
            let first = try await api("POST", "streams/live/cam1/drop", "{}", headers: key)
            #expect(try first.json()["data"]["wasDropped"].bool == false, "\(first.text)")
            try await server.changeStore("DROP TRIGGER no_answers")
            let second = try await api("POST", "streams/live/cam1/drop", "{}", headers: key)
            #expect(second.status == 200 && second.headers["idempotency-replayed"] == nil)
            #expect(try await api("POST", "streams/live/cam1/drop", "{}", headers: key).headers["idempotency-replayed"] == "true")
        }
    }

    /// A key that an earlier version left without an answer.
    @Test func aLostAnswerIsToldAsLost() async throws {
        try await UnboundServer.run { server in
            let api = try await CheckedAPI(server)
            let key = ["Idempotency-Key": "k"]
            try await api.ok("POST", "rooms", #"{"roomId":"r1"}"#, status: 201, headers: key)
            try await server.changeStore("UPDATE answers SET status = NULL, body = NULL")
            let answer = try await api("POST", "rooms", #"{"roomId":"r1"}"#, headers: key)
            #expect(answer.status == 409 && answer.headers["retry-after"] == nil)
            #expect(try answer.json()["error"]["rule"].string == "outcome_unknown")
        }
    }

    /// Only these calls act outside the store, or store their answer after their effect. Only POST calls have an effect to repeat.
    @Test func liveEffectsAreThese() {
        let live = APIRoute.all.filter { $0.effect == .live }.map(\.name)
        #expect(
            live == [
                "dropStream", "reconnectSession", "reconnectViewers", "changeFloor", "reloadSettings", "drainServer", "drainNode",
                "endGathering", "kickFromGathering", "pauseQueue", "resumeQueue", "removeFromQueue",
            ])
        #expect(APIRoute.all.allSatisfy { $0.method == .post || $0.effect == .nothing })
    }

    @Test func answersOutliveARestart() async throws {
        try await Fixture.withDirectory { directory in
            let data = directory.appendingPathComponent("data").path
            let key = ["Idempotency-Key": "k"]
            let first = try await UnboundServer.run(data: data) { try await $0.call("POST", "rooms", "{}", headers: key) }
            let again = try await UnboundServer.run(data: data) { try await $0.call("POST", "rooms", "{}", headers: key) }
            #expect(again.headers["idempotency-replayed"] == "true")
            #expect(again.body == first.body)
        }
    }

    /// Only the first answer holds the secret.
    @Test func aTokensSecretIsNotRepeated() async throws {
        try await UnboundServer.run { server in
            let api = try await CheckedAPI(server)
            let key = ["Idempotency-Key": "k"]
            let first = try await api.ok("POST", "tokens", #"{"name":"x","role":"backend"}"#, status: 201, headers: key)
            let again = try await api.ok("POST", "tokens", #"{"name":"x","role":"backend"}"#, status: 201, headers: key)
            #expect(first["secret"].string != nil)
            #expect(again["secret"].isNull)
            #expect(again["tokenId"].int == first["tokenId"].int)
            let secret = try first["secret"].string.orThrow()
            for name in try FileManager.default.contentsOfDirectory(atPath: server.dataDirectory) {
                let bytes = try Data(contentsOf: URL(fileURLWithPath: "\(server.dataDirectory)/\(name)"))
                #expect(bytes.range(of: Data(secret.utf8)) == nil, "\(name) holds the secret")
            }
        }
    }

    /// Many concurrent requests with one key have one effect. Each gets that answer, or 409 "in_progress".
    @Test func onceAlsoWhenAllComeAtOnce() async throws {
        try await UnboundServer.run { server in
            let api = try await CheckedAPI(server)
            let answers = try await Self.atOnce(40) { _ in try await api("POST", "rooms", "{}", headers: ["Idempotency-Key": "same"]) }
            let statuses = answers.map(\.status)
            #expect(statuses.allSatisfy { $0 == 201 || $0 == 409 }, "\(statuses)")
            for answer in answers where answer.status == 409 {
                #expect(answer.headers["retry-after"] == "1")
                #expect(try answer.json()["error"]["rule"].string == "in_progress")
            }
            #expect(statuses.contains(201))
            #expect(try await api.ok("GET", "rooms")["total"].int == 1)
        }
    }

    /// One of many concurrent requests wins the transition, and there is one event. The others get 409 with the state, or the room as it is.
    @Test(arguments: ["close", "expire", "forbid"]) func oneWinsATransition(_ action: String) async throws {
        try await UnboundServer.run { server in
            let api = try await CheckedAPI(server)
            try await api.ok("POST", "rooms", #"{"roomId":"r1"}"#, status: 201)
            let answers = try await Self.atOnce(30) { _ in try await api("POST", "rooms/r1/\(action)") }
            let refused = action == "expire" ? 29 : 0
            #expect(answers.count { $0.status == 200 } == 30 - refused, "\(answers.map(\.status))")
            #expect(answers.count { $0.status == 409 } == refused, "\(answers.map(\.status))")
            for answer in answers where answer.status == 409 {
                #expect(try answer.json()["error"]["type"].string == "wrong_state")
            }
            let events = try await api.ok("GET", "rooms/r1/events")["list"].list.map(\.["kind"].string)
            let expected = ["close": "room.closed", "expire": "room.expired", "forbid": "room.forbidden"][action]
            #expect(events.count { $0 == expected } == 1, "\(events)")
        }
    }

    /// Two different transitions at once: one may follow the other, and the events agree with the answers.
    @Test func rivalsLeaveOneStory() async throws {
        try await UnboundServer.run { server in
            let api = try await CheckedAPI(server)
            for round in 0..<10 {
                try await api.ok("POST", "rooms", #"{"roomId":"r\#(round)"}"#, status: 201)
                let statuses = try await Self.atOnce(2) { index in
                    try await api("POST", "rooms/r\(round)/\(index == 0 ? "close" : "expire")").status
                }
                // An expired room may be closed; a closed one cannot expire.
                #expect(statuses.contains(200) && statuses.allSatisfy { $0 == 200 || $0 == 409 }, "\(statuses)")
                let events = try await api.ok("GET", "rooms/r\(round)/events")["list"].list
                #expect(events.compactMap(\.["number"].int) == Array(1...1 + statuses.count { $0 == 200 }))
                let state = try await api.ok("GET", "rooms/r\(round)")["state"].string
                #expect(state == "closed" || statuses.contains(409))
                #expect(events.last?["kind"].string == "room.\(state ?? "")")
            }
        }
    }

    private static func atOnce<Value: Sendable>(_ count: Int, _ body: @escaping @Sendable (Int) async throws -> Value) async throws
        -> [Value]
    {
        try await withThrowingTaskGroup(of: Value.self) { tasks in
            for index in 0..<count { tasks.addTask { try await body(index) } }
            var values: [Value] = []
            for try await value in tasks { values.append(value) }
            return values
        }
    }
}
