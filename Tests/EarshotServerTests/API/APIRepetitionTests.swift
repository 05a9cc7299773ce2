@testable import EarshotServer
import Foundation
import Testing

/// The same request twice, one after the other or at once.
@Suite struct APIRepetitionTests {
    @Test func aKeyMakesARequestHappenOnce() async throws {
        try await TestServer.run { server in
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
            let other = try await api.ok("POST", "tokens", #"{"name":"x","role":"app"}"#, status: 201)["secret"].string.orThrow()
            #expect(try await api("POST", "rooms", #"{"title":"two"}"#, token: other, headers: key).status == 201)
            #expect(try await api.ok("GET", "rooms")["total"].int == 2)
        }
    }

    /// What was refused changed nothing, so a repetition is judged anew.
    @Test func refusalsAreNotKept() async throws {
        try await TestServer.run { server in
            let api = try await CheckedAPI(server)
            let key = ["Idempotency-Key": "k"]
            try await api.refused(404, "POST", "rooms/r1/close", headers: key)
            try await api.ok("POST", "rooms", #"{"roomId":"r1"}"#, status: 201)
            try await api.ok("POST", "rooms/r1/close", headers: key)
            let replayed = try await api("POST", "rooms/r1/close", headers: key)
            #expect(replayed.status == 200)
            #expect(replayed.headers["idempotency-replayed"] == "true")
            try await api.refused(409, "POST", "rooms/r1/close")
        }
    }

    /// What is done is done: the caller hears of it though the answer cannot be kept, and a repetition gets it once it could.
    @Test func anAnswerThatCannotBeKeptIsGiven() async throws {
        @Sendable func change(_ server: TestServer, _ sql: String) async throws {
            let script = "import sqlite3,sys; db=sqlite3.connect(sys.argv[1],timeout=20); db.execute(sys.argv[2]); db.commit()"
            let done = try await ClientProcess.run(["python3", "-c", script, "\(server.dataDirectory)/earshot.db", sql], within: 20)
            #expect(done.status == 0, "\(done.errors)")
        }
        try await TestServer.run { server in
            let api = try await CheckedAPI(server)
            let key = ["Idempotency-Key": "order-1"]
            try await change(server, "CREATE TRIGGER no_answers BEFORE UPDATE ON answers BEGIN SELECT RAISE(ROLLBACK, 'full'); END")
            let first = try await api("POST", "rooms", #"{"title":"one"}"#, headers: key)
            #expect(first.status == 201, "\(first.text)")
            try await change(server, "DROP TRIGGER no_answers")
            var again = first
            try await eventually("the answer to be kept") {
                again = try await server.call("POST", "rooms", #"{"title":"one"}"#, headers: key)
                return again.status == 201
            }
            #expect(again.headers["idempotency-replayed"] == "true" && again.body == first.body)
            #expect(try await api.ok("GET", "rooms")["total"].int == 1)
        }
    }

    @Test func answersOutliveARestart() async throws {
        try await Fixture.withDirectory { directory in
            let data = directory.appendingPathComponent("data").path
            let key = ["Idempotency-Key": "k"]
            let first = try await TestServer.run(data: data) { try await $0.call("POST", "rooms", "{}", headers: key) }
            let again = try await TestServer.run(data: data) { try await $0.call("POST", "rooms", "{}", headers: key) }
            #expect(again.headers["idempotency-replayed"] == "true")
            #expect(again.body == first.body)
        }
    }

    /// A secret is told once.
    @Test func aTokensSecretIsNotRepeated() async throws {
        try await TestServer.run { server in
            let api = try await CheckedAPI(server)
            let key = ["Idempotency-Key": "k"]
            let first = try await api.ok("POST", "tokens", #"{"name":"x","role":"app"}"#, status: 201, headers: key)
            let again = try await api.ok("POST", "tokens", #"{"name":"x","role":"app"}"#, status: 201, headers: key)
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

    /// Many at once with one key: one effect, and each answer is that one's or says that it is on its way.
    @Test func onceAlsoWhenAllComeAtOnce() async throws {
        try await TestServer.run { server in
            let api = try await CheckedAPI(server)
            let statuses = try await Self.atOnce(40) { _ in
                try await api("POST", "rooms", "{}", headers: ["Idempotency-Key": "same"]).status
            }
            #expect(statuses.allSatisfy { $0 == 201 || $0 == 409 }, "\(statuses)")
            #expect(statuses.contains(201))
            #expect(try await api.ok("GET", "rooms")["total"].int == 1)
        }
    }

    /// One of many wins a transition, the others are told the state, and there is one event.
    @Test(arguments: ["close", "expire", "forbid"]) func oneWinsATransition(_ action: String) async throws {
        try await TestServer.run { server in
            let api = try await CheckedAPI(server)
            try await api.ok("POST", "rooms", #"{"roomId":"r1"}"#, status: 201)
            let answers = try await Self.atOnce(30) { _ in try await api("POST", "rooms/r1/\(action)") }
            #expect(answers.count { $0.status == 200 } == 1, "\(answers.map(\.status))")
            #expect(answers.count { $0.status == 409 } == 29, "\(answers.map(\.status))")
            for answer in answers where answer.status == 409 {
                #expect(try answer.json()["error"]["type"].string == "wrong_state")
            }
            let events = try await api.ok("GET", "rooms/r1/events")["list"].list.map(\.["kind"].string)
            let expected = ["close": "room.closed", "expire": "room.expired", "forbid": "room.forbidden"][action]
            #expect(events.count { $0 == expected } == 1, "\(events)")
        }
    }

    /// Two different transitions at once: both may follow each other, but the events tell one story.
    @Test func rivalsLeaveOneStory() async throws {
        try await TestServer.run { server in
            let api = try await CheckedAPI(server)
            for round in 0..<10 {
                try await api.ok("POST", "rooms", #"{"roomId":"r\#(round)"}"#, status: 201)
                let statuses = try await Self.atOnce(2) { index in
                    try await api("POST", "rooms/r\(round)/\(index == 0 ? "close" : "expire")").status
                }
                #expect(statuses.sorted() == [200, 409], "\(statuses)")
                let events = try await api.ok("GET", "rooms/r\(round)/events")["list"].list
                #expect(events.map(\.["number"].int) == [1, 2])
                let state = try await api.ok("GET", "rooms/r\(round)")["state"].string
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
