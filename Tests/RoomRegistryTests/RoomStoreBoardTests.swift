import Foundation
import RoomTestSupport
import PostgresTestSupport
import Testing

@testable import RoomRegistry
@testable import Store
@testable import Rooms

/// Strokes on whiteboards: kept in order, in pieces, and for as long as their class.
@Suite struct RoomStoreBoardTests {
    private static let room = RoomID(stored: "class-c")

    private static func state(_ id: String = "class-c", kind: String = "class") -> StoredGathering {
        StoredGathering(id: id, kind: kind, roomID: RoomID(stored: "class-c"), state: "{}", createdAt: 1)
    }

    /// A class with its room.
    private static func open() async throws -> TestRegistry {
        let test = try TestRegistry()
        try await test.registry.start()
        try await test.create("class-c") { $0.policy.retentionMs = 60_000 }
        try await test.registry.commit(GatheringChange(Self.state()))
        return test
    }

    private static func draw(_ test: TestRegistry, _ numbers: ClosedRange<Int64>, page: Int64 = 0, board: String = "b1") async throws {
        for number in numbers {
            try await test.registry.add(StoredStroke(number: number, page: page, text: "stroke \(number)"), toBoard: board, in: Self.room)
        }
    }

    private static func numbers(_ test: TestRegistry, _ board: String = "b1", after: Int64 = 0, bytes: Int = 1 << 20) async throws
        -> [Int64]
    {
        try await test.registry.strokes(ofBoard: board, in: Self.room, after: after, bytes: bytes).list.map(\.number)
    }

    @Test func piecesInOrder() async throws {
        let test = try await Self.open()
        defer { test.remove() }
        try await Self.draw(test, 1...3)
        try await Self.draw(test, 4...9, page: 2)
        try await Self.draw(test, 1...1, board: "b2")
        let whole = try await test.registry.strokes(ofBoard: "b1", in: Self.room, after: 0, bytes: 1_000)
        #expect(whole.isAll && whole.list.map(\.number) == Array(1...9))
        #expect(whole.list[3] == StoredStroke(number: 4, page: 2, text: "stroke 4"))
        // Eight bytes each.
        let piece = try await test.registry.strokes(ofBoard: "b1", in: Self.room, after: 2, bytes: 24)
        #expect(!piece.isAll && piece.list.map(\.number) == [3, 4, 5])
        let one = try await test.registry.strokes(ofBoard: "b1", in: Self.room, after: 8, bytes: 1)
        #expect(one.isAll && one.list.map(\.number) == [9], "one at least")
        let pages = try await test.registry.pages(ofBoard: "b1", in: Self.room)
        #expect(pages.bytes == [0: 24, 2: 48] && pages.last == 9)
        try await test.registry.clear(2, ofBoard: "b1", in: Self.room)
        #expect(try await Self.numbers(test) == [1, 2, 3])
        #expect(try await test.registry.pages(ofBoard: "none", in: Self.room).last == 0)
        let next = try await test.restarted()
        #expect(try await Self.numbers(next) == [1, 2, 3])
        #expect(try await Self.numbers(next, "b2") == [1])
        // A check of files.
        if !TestPostgres.isOn { #expect(try StoreFolder(directory: test.directory, secrets: []).check().problems == []) }
    }

    @Test func theyGoWithBoardAndClass() async throws {
        let test = try await Self.open()
        defer { test.remove() }
        try await Self.draw(test, 1...2)
        try await Self.draw(test, 1...2, board: "b2")
        try await Self.draw(test, 1...2, board: "b3")
        try await test.registry.deleteBoard("b3", in: Self.room)
        var change = GatheringChange(Self.state())
        change.deletedBoards = ["b1"]
        try await test.registry.commit(change)
        #expect(try await Self.numbers(test) == [])
        #expect(try await Self.numbers(test, "b2") == [1, 2])
        #expect(try await Self.numbers(test, "b3") == [])
        // Another gathering of the room ends.
        var other = GatheringChange(Self.state("plain-class-c", kind: "plain"))
        other.hasEnded = true
        try await test.registry.commit(other)
        #expect(try await Self.numbers(test, "b2") == [1, 2])
        var end = GatheringChange(Self.state())
        end.hasEnded = true
        try await test.registry.commit(end)
        #expect(try await Self.numbers(test, "b2") == [])
        // Strokes that were on their way arrive too late.
        await #expect(throws: RegistryError.self) { try await Self.draw(test, 3...3, board: "b2") }
        #expect(try test.sql(Int.self, "SELECT count(*) FROM board_strokes") == 0)
    }

    @Test(arguments: ["delete", "retention"]) func theyGoWithTheRoom(_ end: String) async throws {
        let test = try await Self.open()
        defer { test.remove() }
        try await Self.draw(test, 1...2)
        if end == "delete" {
            try await test.registry.delete("class-c", by: Actor("test"))
        } else {
            try await test.apply(.close, "class-c")
            #expect(try await Self.numbers(test) == [1, 2])
            await test.advance(60_001)
        }
        #expect(try test.sql(Int.self, "SELECT count(*) FROM board_strokes") == 0)
    }

    @Test func orphansGoAtTheStart() async throws {
        let test = try await Self.open()
        defer { test.remove() }
        try await Self.draw(test, 1...2)
        try await test.create("class-over")
        try test.execute(
            "INSERT INTO board_strokes VALUES ('class-gone', 'b', 1, 0, '{}'), ('class-over', 'b', 1, 0, '{}');")
        let next = try await test.restarted()
        #expect(try await Self.numbers(next) == [1, 2])
        #expect(try test.sql(Int.self, "SELECT count(*) FROM board_strokes") == 2)
    }
}
