import Foundation
import ServerTestSupport
import TestSupport
import Testing

/// kill -9 during calls with an Idempotency-Key: a repetition after the restart gets the original answer, and its effect exists once.
///
/// `EARSHOT_KILLS=50` makes it long.
@Suite struct KillRepetitionTests {
    private static let kills = ProcessInfo.processInfo.environment["EARSHOT_KILLS"].flatMap(Int.init) ?? 4
    private static let atOnce = 40

    private struct Call: Sendable {
        let path: String
        let body: String
        let key: String
        /// The answer before the kill; nil when none arrived.
        var answer: HTTPAnswer?

        func send(to server: EarshotProcess) async throws -> HTTPAnswer {
            try await HTTPAnswer.call(
                "POST", "\(server.http)/api/v1/\(self.path)", body: Data(self.body.utf8), token: server.token,
                headers: ["Idempotency-Key": self.key])
        }

        /// Sends calls until one gets no answer.
        static func keepSending(_ prefix: String, to server: EarshotProcess, _ make: (String) -> Call) async -> [Call] {
            var calls: [Call] = []
            for number in 0..<100_000 {
                var call = make("\(prefix)-\(number)")
                // It throws when the server was killed.
                call.answer = try? await call.send(to: server)
                calls.append(call)
                if call.answer == nil { break }
            }
            return calls
        }
    }

    @Test(.seeded, .timeLimit(.minutes(30))) func everyKeyGetsItsAnswer() async throws {
        try await Fixture.withDirectory { directory in
            let config = directory.appendingPathComponent("earshot.yaml")
            try "{api: {rateLimit: 100000}, log: {level: warning}}".write(to: config, atomically: true, encoding: .utf8)
            var all: [Call] = []
            var random = TestRandom()
            for kill in 0..<Self.kills {
                let lifeMs = Int.random(in: 30...400, using: &random)
                all += try await EarshotProcess.serve(data: directory, ["--config", config.path]) { server in
                    await withTaskGroup(of: [Call].self) { group in
                        for worker in 0..<Self.atOnce {
                            group.addTask {
                                await Call.keepSending("k\(kill)-\(worker)", to: server) { name in
                                    // Without an id, so that a second creation would make a second room.
                                    worker % 8 == 0
                                        ? Call(path: "tokens", body: #"{"name":"\#(name)","role":"backend"}"#, key: name)
                                        : Call(path: "rooms", body: #"{"title":"\#(name)"}"#, key: name)
                                }
                            }
                        }
                        group.addTask {
                            try? await Task.sleep(for: .milliseconds(lifeMs))
                            server.process.send(SIGKILL)
                            return []
                        }
                        return await group.reduce(into: []) { $0 += $1 }
                    }
                }
            }
            let calls = all
            #expect(calls.contains { $0.answer == nil }, "some were cut off")
            #expect(calls.allSatisfy { $0.answer.map { $0.status == 201 } ?? true }, "\(calls.compactMap { $0.answer?.status })")
            try await EarshotProcess.serve(data: directory, ["--config", config.path]) { server in
                try await Self.repeatAll(calls, on: server)
            }
        }
    }

    private static func repeatAll(_ calls: [Call], on server: EarshotProcess) async throws {
        var rooms: [String: String] = [:]
        var replayed = 0
        for call in calls {
            let again = try await call.send(to: server)
            #expect(again.status == 201, "\(call.key), \(call.answer == nil ? "without" : "with") an answer before: \(again.text)")
            let isReplayed = again.headers["idempotency-replayed"] == "true"
            if isReplayed { replayed += 1 }
            let data = try again.json()["data"]
            if let first = call.answer {
                #expect(isReplayed)
                let member = call.path == "rooms" ? "roomId" : "createdAt"
                #expect(data[member].string == (try first.json()["data"][member].string))
            }
            if call.path == "rooms" { rooms[call.key] = data["roomId"].string }
            // Once more, for those carried out only now.
            let third = try await call.send(to: server)
            #expect(third.status == 201 && third.headers["idempotency-replayed"] == "true", "\(call.key): \(third.text)")
        }
        #expect(replayed >= calls.count { $0.answer != nil })
        // There are no other rooms and tokens.
        var listed: [String: String] = [:]
        var after = ""
        repeat {
            let page = try await HTTPAnswer.call("GET", "\(server.http)/api/v1/rooms?pageSize=100\(after)", token: server.token)
            let data = try page.json()["data"]
            for room in data["list"].list {
                let title = try room["title"].string.orThrow()
                #expect(listed[title] == nil, "two rooms \(title)")
                listed[title] = room["roomId"].string
            }
            after = data["next"].string.map { "&after=\($0)" } ?? ""
        } while !after.isEmpty
        #expect(listed == rooms)
        let tokens = try await HTTPAnswer.call("GET", "\(server.http)/api/v1/tokens", token: server.token).json()["data"]["list"].list
        let names = tokens.compactMap { $0["name"].string }
        #expect(Set(names).count == names.count)
        #expect(Set(calls.filter { $0.path == "tokens" }.map(\.key)).isSubset(of: Set(names)))
    }
}
