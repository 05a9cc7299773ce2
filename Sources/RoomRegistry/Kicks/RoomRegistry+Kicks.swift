package import Rooms

extension RoomRegistry {
    /// The end of this user's kick from the stream's room; nil if the user may play. Reads memory, for use at every join.
    package nonisolated func keptOut(_ user: String, of path: String) -> Int64? {
        self.kickTable.until(user, path: path, now: self.clock.now())
    }

    /// The same for the room and its talk channel.
    package nonisolated func keptOut(_ user: String, of room: RoomID) -> Int64? {
        self.kickTable.until(user, room: room, now: self.clock.now())
    }
}
