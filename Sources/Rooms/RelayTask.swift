/// A requested link to another server, kept up across restarts until it is deleted. A value.
package struct RelayTask: Sendable, Equatable {
    package enum Direction: String, Sendable, CaseIterable, Codable {
        /// Sends the stream to the other server.
        case push
        /// Fetches the stream from the other server.
        case pull
    }

    package let id: Int64
    package let direction: Direction
    /// The local stream.
    package let path: StreamPath
    /// The stream's address on the other server, with its credential; never logged or listed. Sealed as stored, or plain.
    package let url: String
    /// Whether a pull runs only while somebody plays.
    package let onDemand: Bool
    /// Milliseconds since 1970.
    package let createdAt: Int64

    package init(id: Int64, direction: Direction, path: StreamPath, url: String, onDemand: Bool, createdAt: Int64) {
        self.id = id
        self.direction = direction
        self.path = path
        self.url = url
        self.onDemand = onDemand
        self.createdAt = createdAt
    }

    /// A copy with the sealed or the plain form of the address.
    package func with(url: String) -> RelayTask {
        RelayTask(
            id: self.id, direction: self.direction, path: self.path, url: url, onDemand: self.onDemand, createdAt: self.createdAt)
    }
}

extension RoomLimits {
    /// Maximum links to other servers; each has a thread.
    package static let relayTasks = 200
}

extension StoreAccess {
    func insertRelayTask(
        _ direction: RelayTask.Direction, _ path: StreamPath, url: String, onDemand: Bool, now: Int64
    ) throws -> RelayTask {
        guard Int(try self.number("SELECT count(*) FROM relay_tasks") ?? 0) < RoomLimits.relayTasks else {
            throw RegistryError.tooMany(what: "relay tasks", limit: RoomLimits.relayTasks)
        }
        let id = try self.insert(
            "INSERT INTO relay_tasks (direction, app, name, url, on_demand, created_at) VALUES (?, ?, ?, ?, ?, ?) RETURNING id",
            [direction.rawValue, path.app, path.name, url, onDemand ? 1 : 0, now])
        return RelayTask(id: id, direction: direction, path: path, url: url, onDemand: onDemand, createdAt: now)
    }

    func relayTasks() throws -> [RelayTask] {
        try self.all("SELECT id, direction, app, name, url, on_demand, created_at FROM relay_tasks ORDER BY id") { row in
            RelayTask(
                id: row.next(), direction: try row.word(), path: StreamPath(app: row.next(), name: row.next()), url: row.next(),
                onDemand: row.next() as Int64 == 1, createdAt: row.next())
        }
    }

    func setRelayTask(_ id: Int64, url: String) throws {
        // Overwrites the former text in the file, too.
        try self.runScript("PRAGMA secure_delete = ON")
        try self.run("UPDATE relay_tasks SET url = ? WHERE id = ?", [url, id])
    }

    func deleteRelayTask(_ id: Int64) throws -> Bool { try self.change("DELETE FROM relay_tasks WHERE id = ?", [id]) > 0 }
}

extension RoomRegistry {
    package nonisolated func createRelayTask(
        _ direction: RelayTask.Direction, _ path: StreamPath, url: String, onDemand: Bool, keeping: KeptAnswer<RelayTask>? = nil
    ) async throws(RegistryError) -> RelayTask {
        try await self.perform(keeping: keeping) {
            try $0.store.insertRelayTask(direction, path, url: url, onDemand: onDemand, now: $0.now)
        }
    }

    package nonisolated func relayTasks() async throws(RegistryError) -> [RelayTask] {
        try await self.store.read { try $0.relayTasks() }
    }

    /// Replaces the stored form of the same address.
    package nonisolated func setRelayTask(_ id: Int64, url: String) async throws(RegistryError) {
        try await self.perform { try $0.store.setRelayTask(id, url: url) }
        await self.emptyLog()
    }

    /// Removes overwritten data from all files, unless somebody is reading them.
    private func emptyLog() {
        // If the log is in use now, the next restart empties it.
        try? self.store.emptyLog()
    }

    /// False if there is no task with this id.
    package nonisolated func deleteRelayTask(_ id: Int64) async throws(RegistryError) -> Bool {
        try await self.perform { try $0.store.deleteRelayTask(id) }
    }
}
