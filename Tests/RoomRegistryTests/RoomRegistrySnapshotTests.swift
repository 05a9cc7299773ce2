import Testing

@testable import RoomRegistry
@testable import Rooms

/// The index of pictures taken at an interval.
@Suite struct RoomRegistrySnapshotTests {
    private static func add(_ id: String, of name: String, bytes: Int64, _ bounds: SnapshotBounds, _ test: TestRegistry) async throws
        -> [String]
    {
        let path = StreamPath(app: "live", name: name)
        let snapshot = SnapshotRecord(
            id: id, path: path, roomID: RoomID(stored: name), slot: 1, file: "\(path)/\(id).jpg", takenAt: test.now, bytes: bytes,
            width: 640, height: 360)
        test.pass(1_000)
        return try await test.registry.snapshotTaken(snapshot, bounds).map(\.id)
    }

    /// Pictures may take up all of the space. One byte more drops the oldest, whichever stream it is of.
    @Test func thePicturesSpaceIsBounded() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        let bounds = SnapshotBounds(perStream: 10, bytes: 300)
        #expect(try await Self.add("a1", of: "a", bytes: 100, bounds, test) == [])
        #expect(try await Self.add("b1", of: "b", bytes: 100, bounds, test) == [])
        #expect(try await Self.add("b2", of: "b", bytes: 100, bounds, test) == [])
        #expect(try await Self.add("b3", of: "b", bytes: 1, bounds, test) == ["a1"])
        // The one just taken stays, however large it is.
        #expect(try await Self.add("c1", of: "c", bytes: 1_000, bounds, test) == ["b1", "b2", "b3"])
        #expect(try await test.registry.snapshotCount() == 1)
        // 0 is no limit.
        #expect(try await Self.add("d1", of: "d", bytes: 1_000, SnapshotBounds(perStream: 10, bytes: 0), test) == [])
    }

    @Test func aStreamKeepsItsNewestPictures() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        let bounds = SnapshotBounds(perStream: 2, bytes: 0)
        for id in ["a1", "a2"] { #expect(try await Self.add(id, of: "a", bytes: 1, bounds, test) == []) }
        #expect(try await Self.add("b1", of: "b", bytes: 1, bounds, test) == [])
        #expect(try await Self.add("a3", of: "a", bytes: 1, bounds, test) == ["a1"])
    }
}
