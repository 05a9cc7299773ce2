import Rooms
import Store

extension StoreAccess {
    func insertLink(
        _ direction: Link.Direction, _ path: StreamPath, url: String, onDemand: Bool, now: Int64
    ) throws -> Link {
        guard Int(try self.number("SELECT count(*) FROM links") ?? 0) < RoomLimits.links else {
            throw RegistryError.tooMany(what: "links", limit: RoomLimits.links)
        }
        let id = try self.insert(
            "INSERT INTO links (direction, app, name, url, on_demand, created_at) VALUES ($1, $2, $3, $4, $5, $6) RETURNING id",
            [direction.rawValue, path.app, path.name, url, onDemand ? 1 : 0, now])
        return Link(id: id, direction: direction, path: path, url: url, onDemand: onDemand, createdAt: now)
    }

    func links() throws -> [Link] {
        try self.all("SELECT id, direction, app, name, url, on_demand, created_at FROM links ORDER BY id") { row in
            Link(
                id: row.next(), direction: try row.word(), path: StreamPath(app: row.next(), name: row.next()), url: row.next(),
                onDemand: row.next() as Int64 == 1, createdAt: row.next())
        }
    }

    func setLink(_ id: Int64, url: String) throws {
        // Overwrites the former text in the file, too.
        if let pragma = self.connection.dialect.overwriteDeleted { try self.runScript(pragma) }
        try self.run("UPDATE links SET url = $1 WHERE id = $2", [url, id])
    }

    func deleteLink(_ id: Int64) throws -> Bool { try self.change("DELETE FROM links WHERE id = $1", [id]) > 0 }
}
