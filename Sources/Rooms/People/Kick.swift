/// A kicked user, barred from a room until a given time. A value.
package struct Kick: Sendable, Equatable {
    package let roomID: RoomID
    package let user: String
    /// Milliseconds since 1970.
    package let until: Int64

    package init(roomID: RoomID, user: String, until: Int64) {
        self.roomID = roomID
        self.user = user
        self.until = until
    }

    /// The default for calls without a duration: longer than a client's automatic retry takes.
    package static let defaultMs: Int64 = 10_000
    package static let longestMs: Int64 = 7 * 86_400_000
    /// The limit per room. Above it, the kicks that end first are dropped.
    package static let mostPerRoom = 512
}
