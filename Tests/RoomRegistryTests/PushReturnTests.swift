import PostgresTestSupport
import TestSupport
import Testing

@testable import RoomRegistry
@testable import Rooms

/// Devices that come back to their push while the store is away.
@Suite struct PushReturnTests {
    private static let path = StreamPath(app: "live", name: "cam1")

    private static func request(
        _ identity: String = "key", rank: Int64 = 1, takeover: PushClaim.Takeover = .sameIdentity, user: String? = "anna",
        room: String? = nil, session: UInt64 = 7
    ) -> PushRequest {
        PushRequest(
            path: Self.path, clientAddress: "192.0.2.\(session)", session: session, parameters: "", mayCreateRoom: false, room: room,
            user: user, claim: PushClaim(identity: identity, rank: rank, takeover: takeover))
    }

    /// A live room, whose store then takes no writes. `ends`: how the push's connection ended since.
    private func withAbsence(_ ends: PushEnd?, _ body: (TestRegistry, PushGrant) async throws -> Void) async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        try await test.create("cam1")
        let grant = try await test.registry.admitPush(Self.request()).get()
        #expect(grant.returns == 0)
        test.registry.mediaArrived(grant.sequence, MediaSummary())
        await test.settle()
        try test.refuseWrites(true)
        if let ends { test.registry.pushEnded(grant.sequence, ends) }
        #expect(await !test.registry.admitPush(Self.request("another")).isSuccess)
        #expect(test.registry.storeStatus.isFailing)
        try await body(test, grant)
    }

    /// The ends of pushes in the events, once the store is back.
    private func ends(_ test: TestRegistry) async throws -> [String] {
        try test.refuseWrites(false)
        await test.settle()
        try await eventually("all facts stored") { test.registry.storeStatus.waitingFacts == 0 && !test.registry.storeStatus.isFailing }
        #expect(test.kinds.count { $0 == .streamBegin } == 1)
        return try test.events.filter { $0.kind == .streamEnd }.map { try fields($0)["end"] ?? "" }
    }

    // MARK: - One that was lost

    @Test(arguments: [PushEnd.connectionLost, .clientStopped, .mediaIdle]) func thePushGoesOn(_ end: PushEnd) async throws {
        try await self.withAbsence(end) { test, grant in
            let again = try await test.registry.admitPush(Self.request(rank: 2, session: 8)).get()
            #expect(again.sequence == grant.sequence && again.returns == 1)
            test.registry.pushReturned(again)
            test.registry.mediaArrived(again.sequence, MediaSummary())
            // The former connection's own report comes late.
            test.registry.pushEnded(grant.sequence, .connectionLost)
            #expect(try await self.ends(test) == [])
            #expect(try await test.registry.room("cam1").state == .live)
            #expect(!test.kinds.contains(.roomInterrupted) && test.cuts.isEmpty)
            #expect(try test.sql(Int.self, "SELECT count(*) FROM pushes") == 1)
            #expect(try test.sql(Int.self, "SELECT session FROM pushes") == 8)
            test.registry.pushEnded(again.sequence, .connectionLost, returns: 1)
            await test.settle()
            #expect(try await test.registry.room("cam1").state == .interrupted)
            #expect(test.registry.runningPushes.count == 0)
        }
    }

    /// Each time anew: its end within this absence, too.
    @Test func itGoesOnAgainAndAgain() async throws {
        try await self.withAbsence(.connectionLost) { test, grant in
            for returns in 1...3 {
                let again = try await test.registry.admitPush(Self.request()).get()
                #expect(again.sequence == grant.sequence && again.returns == returns)
                test.registry.pushReturned(again)
                test.pass(29_000)
                test.registry.pushEnded(again.sequence, .connectionLost, returns: returns)
            }
            test.pass(29_999)
            #expect(try await self.ends(test) == ["connectionLost"])
            #expect(test.registry.runningPushes.count == 0)
        }
    }

    @Test func afterItsGraceItIsRefused() async throws {
        for (end, ms) in [(PushEnd.connectionLost, Int64(30_000)), (.clientStopped, 3_000)] {
            try await self.withAbsence(end) { (test, _) async throws in
                test.pass(ms)
                #expect(await !test.registry.admitPush(Self.request()).isSuccess)
                #expect(try await self.ends(test) == [end.rawValue])
            }
        }
    }

    /// Nobody else, and none that was ended on purpose.
    @Test func othersAreRefused() async throws {
        try await self.withAbsence(.connectionLost) { (test, grant) async throws in
            let others = [
                Self.request("other"), Self.request(rank: 0), Self.request(user: "ben"), Self.request(user: nil),
                Self.request(room: "cam1"), Self.request(""),
            ]
            for request in others { #expect(await !test.registry.admitPush(request).isSuccess, "\(request)") }
            // As another node's signals would have it.
            await test.registry.playTable.apply([.banned(Self.path, BanTerms(untilMs: .max, reason: ""))])
            #expect(await !test.registry.admitPush(Self.request()).isSuccess)
            await test.registry.playTable.apply([.banned(Self.path, nil)])
            let kick = Kick(roomID: grant.roomID, user: "anna", until: test.now + 10_000)
            test.registry.kickTable.apply([(kick, [Self.path])], now: test.now)
            #expect(await !test.registry.admitPush(Self.request()).isSuccess)
            test.pass(10_000)
            #expect(try await test.registry.admitPush(Self.request()).get().sequence == grant.sequence)
        }
        for end in [PushEnd.dropped, .forbidden, .roomEnded, .takenOver] {
            try await self.withAbsence(end) { (test, _) async throws in
                #expect(await !test.registry.admitPush(Self.request()).isSuccess)
                #expect(try await self.ends(test) == [end.rawValue])
            }
        }
    }

    /// It came back, and was gone before it had claimed the stream: the push ends as it did.
    @Test func aReturnWithoutAClaim() async throws {
        try await self.withAbsence(.clientStopped) { test, _ in
            let again = try await test.registry.admitPush(Self.request()).get()
            test.registry.pushEnded(again.sequence, .connectionLost, returns: again.returns)
            // Its grace goes on from its end.
            test.pass(2_999)
            let third = try await test.registry.admitPush(Self.request()).get()
            #expect(third.sequence == again.sequence && third.returns == 2)
            test.registry.pushEnded(third.sequence, .refused, returns: third.returns)
            test.pass(1)
            #expect(await !test.registry.admitPush(Self.request()).isSuccess)
            #expect(try await self.ends(test) == ["clientStopped"])
            #expect(test.registry.runningPushes.count == 0)
        }
    }

    // MARK: - A ghost

    @Test func aGhostIsReplaced() async throws {
        try await self.withAbsence(nil) { test, grant in
            #expect(await !test.registry.admitPush(Self.request(takeover: .nobody)).isSuccess)
            let again = try await test.registry.admitPush(Self.request()).get()
            #expect(again.sequence == grant.sequence)
            // By the claim, and by the end of its connection.
            test.registry.pushEnded(grant.sequence, .takenOver)
            test.registry.pushReturned(again)
            test.registry.pushEnded(grant.sequence, .connectionLost)
            #expect(try await self.ends(test) == [])
            #expect(try await test.registry.room("cam1").state == .live)
            test.registry.pushEnded(again.sequence, .clientStopped, returns: again.returns)
            await test.settle()
            #expect(try fields(try #require(test.events.last { $0.kind == .streamEnd }))["end"] == "clientStopped")
        }
    }

    /// The stream refuses the connection that came back: the ghost goes on, until its own end.
    @Test func aGhostThatIsNotReplaced() async throws {
        try await self.withAbsence(nil) { test, grant in
            let again = try await test.registry.admitPush(Self.request()).get()
            test.registry.pushEnded(again.sequence, .refused, returns: again.returns)
            test.registry.pushEnded(again.sequence, .refused, returns: again.returns)
            #expect(test.registry.runningPushes.count == 1)
            test.registry.pushEnded(grant.sequence, .protocolError)
            #expect(try await self.ends(test) == ["protocolError"])
        }
    }

    /// Two come back at once. The first of them has the stream, the second was refused: the first one's end counts.
    @Test func twoAtOnce() async throws {
        try await self.withAbsence(nil) { test, grant in
            let (first, second) = (
                try await test.registry.admitPush(Self.request()).get(), try await test.registry.admitPush(Self.request()).get()
            )
            #expect(first.returns == 1 && second.returns == 2)
            test.registry.pushEnded(grant.sequence, .takenOver)
            test.registry.pushReturned(first)
            test.registry.pushEnded(second.sequence, .refused, returns: 2)
            test.registry.pushEnded(grant.sequence, .connectionLost)
            #expect(try await self.ends(test) == [])
            test.registry.pushEnded(first.sequence, .clientStopped, returns: 1)
            await test.settle()
            #expect(test.registry.runningPushes.count == 0)
        }
    }

    // MARK: - A store that is well

    /// Nothing of it then: each push is one of its own.
    @Test func withAStoreThatIsWellEveryPushIsNew() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        try await test.create("cam1")
        let first = try await test.registry.admitPush(Self.request()).get()
        let second = try await test.registry.admitPush(Self.request()).get()
        #expect(second.sequence > first.sequence && test.registry.runningPushes.count == 2)
        test.registry.pushEnded(first.sequence, .takenOver)
        test.registry.pushEnded(first.sequence, .takenOver)
        test.registry.pushEnded(second.sequence, .connectionLost)
        await test.settle()
        #expect(test.registry.runningPushes.count == 0)
        #expect(try test.sql(Int.self, "SELECT count(*) FROM pushes WHERE ended_at IS NULL") == 0)
    }

    /// A full queue drops the end: the push is forgotten here, and open in the store until its room ends.
    @Test func anEndThatIsDropped() async throws {
        let test = try TestRegistry { $0.intake = SubmissionQueue.Limits(calls: 100, facts: 8, factBytes: 1 << 20) }
        defer { test.remove() }
        try await test.create("cam1")
        let grant = try await test.registry.admitPush(Self.request()).get()
        await test.settle()
        try test.refuseWrites(true)
        test.registry.pushEnded(grant.sequence, .connectionLost)
        for _ in 0..<40 { test.registry.mediaIdle(grant.sequence) }
        try await eventually("the drop") { test.registry.runningPushes.count == 0 }
        #expect(await !test.registry.admitPush(Self.request()).isSuccess)
    }
}
