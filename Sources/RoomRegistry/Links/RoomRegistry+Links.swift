package import Rooms
import Store

extension RoomRegistry {
    /// Stores an event for a change of a link, in submission order. Any thread; does not wait.
    package nonisolated func linkChanged(_ change: LinkChange) {
        self.submit(trail: 2_048) { try $0.linkChanged(change) }
    }
}

extension RoomRegistry {
    package nonisolated func createLink(
        _ direction: Link.Direction, _ path: StreamPath, url: String, onDemand: Bool, keeping: KeptAnswer<Link>? = nil
    ) async throws(RegistryError) -> Link {
        try await self.call(keeping: keeping) { work in
            let link = try work.store.insertLink(direction, path, url: url, onDemand: onDemand, now: work.now)
            work.change.object = "link/\(link.id)"
            return link
        }
    }

    package nonisolated func links() async throws(RegistryError) -> [Link] {
        try await self.store.read { try $0.links() }
    }

    /// Replaces the stored form of the same address.
    package nonisolated func setLink(_ id: Int64, url: String) async throws(RegistryError) {
        try await self.call { try $0.store.setLink(id, url: url) }
        await self.emptyLog()
    }

    /// Removes overwritten data from all files, unless somebody is reading them.
    private func emptyLog() {
        // If the log is in use now, the next restart empties it.
        try? self.store.emptyLog()
    }

    /// False if there is no link with this id.
    package nonisolated func deleteLink(_ id: Int64) async throws(RegistryError) -> Bool {
        try await self.call { try $0.store.deleteLink(id) }
    }
}
