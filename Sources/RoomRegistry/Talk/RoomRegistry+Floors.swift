package import Rooms

extension RoomRegistry {
    /// Stores an event per record, in submission order, or none if the room is gone. Any thread; does not wait.
    package nonisolated func floorChanged(_ roomID: RoomID, _ records: [FloorRecord]) {
        guard !records.isEmpty else { return }
        self.submit(trail: 512 * records.count) { try $0.floorChanged(roomID, records) }
    }
}
