import Rooms
import Store

extension StoreAccess {
    func insertRelayTask(
        _ direction: RelayTask.Direction, _ path: StreamPath, url: String, onDemand: Bool, now: Int64
    ) throws -> RelayTask {
        guard Int(try self.number("SELECT count(*) FROM relay_tasks") ?? 0) < RoomLimits.relayTasks else {
            throw RegistryError.tooMany(what: "relay tasks", limit: RoomLimits.relayTasks)
        }
        let id = try self.insert(
            "INSERT INTO relay_tasks (direction, app, name, url, on_demand, created_at) VALUES ($1, $2, $3, $4, $5, $6) RETURNING id",
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
        if let pragma = self.connection.dialect.overwriteDeleted { try self.runScript(pragma) }
        try self.run("UPDATE relay_tasks SET url = $1 WHERE id = $2", [url, id])
    }

    func deleteRelayTask(_ id: Int64) throws -> Bool { try self.change("DELETE FROM relay_tasks WHERE id = $1", [id]) > 0 }
}
