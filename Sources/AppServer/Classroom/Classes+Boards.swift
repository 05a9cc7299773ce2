import Apps
import RoomRegistry

/// Creates and deletes whiteboards, which this server keeps or another one (``ExternalBoards``).
extension Classes {
    /// The new board's id. `here`: this server's public address.
    func createBoard(by user: String, here: String, _ runner: GatheringRunner, _ room: Classroom) async throws -> String {
        let own = "\(here)/board/\(Self.newID())?k=1"
        guard let external = self.services.externalBoards else {
            _ = try await self.apply(.boardCreate(by: user, boardID: own), runner)
            return own
        }
        // Checked first, so that a request that the class refuses creates no board on the other server.
        try self.check(.boardCreate(by: user, boardID: own), room)
        let (url, service) = try await external.create()
        do {
            _ = try await self.apply(.boardCreate(by: user, boardID: url, service: service), runner)
        } catch {
            external.discard([service])
            throw error
        }
        return url
    }

    func deleteBoard(_ id: String, by user: String, _ runner: GatheringRunner, _ room: Classroom) async throws {
        try self.check(.boardDelete(by: user, boardID: id), room)
        if let service = room.board(id)?.service { try await self.services.externalBoards?.destroy(service) }
        _ = try await self.apply(.boardDelete(by: user, boardID: id), runner)
    }

    /// Throws if the class would refuse the input.
    private func check(_ input: Classroom.Input, _ room: Classroom) throws(GatheringRefusal) {
        var trial = room
        _ = try trial.apply(input, nowMs: self.services.rooms.now)
    }
}
