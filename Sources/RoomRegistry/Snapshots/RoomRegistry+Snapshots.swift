package import Rooms
import Store

extension RoomRegistry {
    /// Records a picture that is in its file and publishes its event. The caller removes the files of the returned pictures.
    package nonisolated func snapshotTaken(
        _ snapshot: SnapshotRecord, _ bounds: SnapshotBounds
    ) async throws(RegistryError) -> [SnapshotRecord] {
        try await self.call { try $0.snapshotTaken(snapshot, bounds) }
    }

    /// Forgets pictures taken before this time (milliseconds since 1970). The caller removes their files.
    package nonisolated func forgetSnapshots(takenBefore ms: Int64, limit: Int) async throws(RegistryError) -> [SnapshotRecord] {
        guard try await !self.store.read({ try $0.snapshots(takenBefore: ms, limit: 1) }).isEmpty else { return [] }
        return try await self.call { work in
            let old = try work.store.snapshots(takenBefore: ms, limit: limit)
            for snapshot in old { try work.store.deleteSnapshot(snapshot.id) }
            return old
        }
    }

    package nonisolated func snapshotCount() async throws(RegistryError) -> Int {
        try await self.store.read { Int(try $0.number("SELECT count(*) FROM snapshots") ?? 0) }
    }

    package nonisolated func snapshot(_ id: String) async throws(RegistryError) -> SnapshotRecord? {
        try await self.store.read { try $0.snapshot(id) }
    }

    /// A room's pictures, newest first. `after` is the `row` of the previous page's last one.
    package nonisolated func snapshots(
        ofRoom room: RoomID, slot: Int?, after: Int64?, limit: Int
    ) async throws(RegistryError) -> [SnapshotRecord] {
        try await self.store.read { try $0.snapshots(ofRoom: room, slot: slot, after: after, limit: min(max(1, limit), 10_000)) }
    }
}
