import Foundation
import PostgresTestSupport
import RoomRegistry
import Rooms
import ServerTestSupport
import TestSupport
import Testing

/// kill -9 at random moments during calls: every answered call is there at the next start, once.
///
/// `EARSHOT_KILLS=200` makes it long.
@Suite struct KillRestartTests {
    private static let kills = ProcessInfo.processInfo.environment["EARSHOT_KILLS"].flatMap(Int.init) ?? 8

    /// Calls that the server has confirmed. An unanswered call may have had its effect, at most once.
    private actor Ledger {
        struct Confirmed: Sendable {
            var transitions: [RoomEvent.Kind] = []
            /// The transition of a call that was sent and never answered.
            var pending: RoomEvent.Kind?
        }

        private(set) var rooms: [String: Confirmed] = [:]
        private(set) var bans: [String: Bool] = [:]
        private(set) var tokens: Set<String> = []
        private(set) var refusals: [String] = []

        func sends(_ id: String, _ kind: RoomEvent.Kind) { self.rooms[id, default: Confirmed()].pending = kind }

        func answered(_ id: String, _ kind: RoomEvent.Kind, _ answer: HTTPAnswer) {
            guard answer.status < 300 else { return self.refusals.append("\(kind.rawValue) \(id): \(answer.status) \(answer.text)") }
            self.rooms[id]?.transitions.append(kind)
            self.rooms[id]?.pending = nil
        }

        /// Nil while a call is in flight.
        func ban(_ name: String, _ isBanned: Bool?) { self.bans[name] = isBanned }
        func token(_ name: String) { self.tokens.insert(name) }
    }

    private struct Caller: Sendable {
        let server: EarshotProcess
        let ledger: Ledger

        private func post(_ path: String, _ body: String?, key: String? = nil) async throws -> HTTPAnswer {
            try await HTTPAnswer.call(
                "POST", "\(self.server.http)/api/v1/\(path)", body: body.map { Data($0.utf8) }, token: self.server.token,
                headers: key.map { ["Idempotency-Key": $0] } ?? [:])
        }

        /// Makes calls until the server is gone.
        func work(_ prefix: String) async {
            do {
                for number in 0..<100_000 {
                    let id = "\(prefix)-\(number)"
                    await self.ledger.sends(id, .roomCreated)
                    await self.ledger.answered(id, .roomCreated, try await self.post("rooms", #"{"roomId":"\#(id)"}"#, key: id))
                    for (action, kind) in [("forbid", RoomEvent.Kind.roomForbidden), ("resume", .roomUnforbidden), ("close", .roomClosed)] {
                        await self.ledger.sends(id, kind)
                        await self.ledger.answered(id, kind, try await self.post("rooms/\(id)/\(action)", nil))
                    }
                    await self.ledger.ban("x\(id)", nil)
                    if try await self.post("streams/live/x\(id)/forbid", nil).status == 200 { await self.ledger.ban("x\(id)", true) }
                    if number % 4 == 0 {
                        let answer = try await self.post("tokens", #"{"name":"t\#(id)","role":"backend"}"#)
                        if answer.status == 201 { await self.ledger.token("t\(id)") }
                    }
                }
            } catch {
                // The server was killed.
            }
        }
    }

    @Test(.seeded, .timeLimit(.minutes(30))) func nothingThatWasAnsweredIsLost() async throws {
        try await Fixture.withDirectory { directory in
            let config = directory.appendingPathComponent("earshot.yaml")
            // An unreachable receiver: every delivery stays pending.
            try """
            webhooks: {urls: ["http://127.0.0.1:9/hook"], retryInterval: 10m}
            outbound: {allowPrivate: [127.0.0.0/8]}
            api: {rateLimit: 100000}
            log: {level: warning}
            """.write(to: config, atomically: true, encoding: .utf8)
            let ledger = Ledger()
            var random = TestRandom()
            for kill in 0..<Self.kills {
                let lifeMs = Int.random(in: 20...500, using: &random)
                try await EarshotProcess.serve(data: directory, ["--config", config.path]) { server in
                    let caller = Caller(server: server, ledger: ledger)
                    await withTaskGroup(of: Void.self) { group in
                        for worker in 0..<4 { group.addTask { await caller.work("k\(kill)-\(worker)") } }
                        group.addTask {
                            try? await Task.sleep(for: .milliseconds(lifeMs))
                            server.process.send(SIGKILL)
                        }
                    }
                }
            }
            #expect(await ledger.refusals == [])
            let registry = try RoomRegistry(
                try TestPostgres.store(in: directory.appendingPathComponent("data").path), settings: RoomRegistry.Settings())
            try await self.compare(ledger, registry)
            await registry.stop()
        }
    }

    private func compare(_ ledger: Ledger, _ registry: RoomRegistry) async throws {
        var events: [RoomEvent] = []
        while true {
            let more = try await registry.events(after: events.last?.id ?? 0, room: nil, limit: 1_000)
            guard !more.isEmpty else { break }
            events += more
        }
        var deliveries: [Int64: Int] = [:]
        var before: Int64?
        while true {
            let page = try await registry.deliveries(state: .pending, room: nil, before: before, limit: 200)
            guard let last = page.last else { break }
            for delivery in page { deliveries[delivery.event.id, default: 0] += 1 }
            before = last.id
        }
        #expect(events.allSatisfy { deliveries[$0.id] == 1 }, "each event has one delivery, still pending")
        #expect(deliveries.count == events.count)

        let byRoom = Dictionary(grouping: events.filter { $0.roomID != nil }) { $0.roomID?.rawValue ?? "" }
        let rooms = await ledger.rooms
        #expect(rooms.count > Self.kills, "the load was one")
        for (id, confirmed) in rooms {
            let stored = byRoom[id] ?? []
            #expect(
                stored.map(\.number) == Array(1...max(1, Int64(stored.count))).prefix(stored.count).map { $0 },
                "\(id): numbered without a gap")
            let transitions = stored.filter(\.kind.isTransition).map(\.kind)
            // At most the one unanswered call may have been added.
            let wanted = confirmed.transitions
            #expect(
                transitions == wanted || (confirmed.pending != nil && transitions == wanted + [confirmed.pending].compactMap { $0 }),
                "\(id): confirmed \(wanted), asked \(String(describing: confirmed.pending)), stored \(transitions)")
            guard let last = transitions.last else { continue }
            let state: RoomState =
                [.roomCreated: .created, .roomForbidden: .forbidden, .roomUnforbidden: .created, .roomClosed: .closed][last] ?? .live
            #expect(try await registry.room(id).state == state, "\(id)")
        }
        #expect(Set(byRoom.keys).isSubset(of: Set(rooms.keys)), "no room that nobody asked for")
        for (name, isBanned) in await ledger.bans where isBanned {
            #expect(try await registry.ban(of: StreamPath(app: "live", name: name)) != nil, "\(name)")
        }
        let tokens = try await registry.tokens().map(\.name)
        #expect(Set(tokens).count == tokens.count, "no token twice")
        #expect(await ledger.tokens.isSubset(of: Set(tokens)))
    }
}
