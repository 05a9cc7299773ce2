package import Rooms

extension RoomRegistry {
    /// Counts every room: for the self-check, too slow for regular calls.
    package nonisolated func counts() async throws(RegistryError) -> RoomCounts { try await self.store.read { try $0.counts() } }
}
