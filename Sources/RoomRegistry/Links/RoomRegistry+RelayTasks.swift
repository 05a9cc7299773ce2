package import Rooms
import Store

extension RoomRegistry {
    /// Stores an event for a change of a link, in submission order. Any thread; does not wait.
    package nonisolated func relayChanged(_ change: RelayChange) {
        self.submit(trail: 2_048) { try $0.relayChanged(change) }
    }
}

extension RoomRegistry {
    package nonisolated func createRelayTask(
        _ direction: RelayTask.Direction, _ path: StreamPath, url: String, onDemand: Bool, keeping: KeptAnswer<RelayTask>? = nil
    ) async throws(RegistryError) -> RelayTask {
        try await self.call(keeping: keeping) { work in
            let task = try work.store.insertRelayTask(direction, path, url: url, onDemand: onDemand, now: work.now)
            work.change.object = "relay-task/\(task.id)"
            return task
        }
    }

    package nonisolated func relayTasks() async throws(RegistryError) -> [RelayTask] {
        try await self.store.read { try $0.relayTasks() }
    }

    /// Replaces the stored form of the same address.
    package nonisolated func setRelayTask(_ id: Int64, url: String) async throws(RegistryError) {
        try await self.call { try $0.store.setRelayTask(id, url: url) }
        await self.emptyLog()
    }

    /// Removes overwritten data from all files, unless somebody is reading them.
    private func emptyLog() {
        // If the log is in use now, the next restart empties it.
        try? self.store.emptyLog()
    }

    /// False if there is no task with this id.
    package nonisolated func deleteRelayTask(_ id: Int64) async throws(RegistryError) -> Bool {
        try await self.call { try $0.store.deleteRelayTask(id) }
    }
}
