import Testing

@testable import RoomRegistry
@testable import Rooms

/// How much of the audit trail is kept.
@Suite struct RoomStoreAuditTests {
    private func add(_ count: Int, refused: Bool = false, to test: TestRegistry) async throws {
        try await test.registry.result { work in
            for index in 0..<count {
                var line = AuditLine(refused ? "refused\(index)" : "call\(index)")
                line.status = refused ? 401 : 200
                try work.store.insert(line, at: work.now)
            }
        }.get()
    }

    private func all(_ test: TestRegistry) async throws -> [AuditEntry] {
        var query = AuditQuery()
        query.limit = 10_000
        return try await test.registry.audit(query)
    }

    @Test func oldLinesGo() async throws {
        let test = try TestRegistry { $0.audit.keptMs = 3 * 86_400_000 }
        defer { test.remove() }
        try await test.registry.start()
        try await self.add(5, to: test)
        await test.advance(2 * 86_400_000)
        try await self.add(2, to: test)
        #expect(try await self.all(test).count == 7)
        await test.advance(86_400_000 + 60_001)
        await test.advance(120_000)
        #expect(try await self.all(test).map(\.line.operation) == ["call1", "call0"])
        await test.registry.stop()
    }

    /// A list has at most ten thousand lines, and at least one.
    @Test func listsAreBounded() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        try await self.add(10_001, to: test)
        var query = AuditQuery()
        for (limit, count) in [(0, 1), (10_000, 10_000), (10_001, 10_000), (.max, 10_000)] {
            query.limit = limit
            #expect(try await test.registry.audit(query).count == count, "\(limit)")
        }
    }

    /// The oldest go first, and a flood of refused calls displaces refused ones only.
    @Test func tooManyLinesGo() async throws {
        let test = try TestRegistry { $0.audit.lines = 50 }
        defer { test.remove() }
        try await test.registry.start()
        try await self.add(60, to: test)
        try await self.add(500, refused: true, to: test)
        for _ in 0..<8 { await test.advance(60_001) }
        let kept = try await self.all(test)
        #expect(kept.count { $0.line.isRefused } == 5 && kept.count { !$0.line.isRefused } == 50)
        #expect(kept.first { !$0.line.isRefused }?.line.operation == "call59" && kept.last?.line.operation == "call10")
        await test.registry.stop()
    }
}
