/// The versions of a room that a change is meant for: the API's If-Match. A value.
package struct RoomCondition: Sendable, Equatable {
    package let versions: Set<String>
    package init(versions: Set<String>) { self.versions = versions }

    /// Throws ``RegistryError/versionChanged(_:version:)`` for a room of another version.
    func check(_ room: Room) throws(RegistryError) {
        guard self.versions.contains(room.version) else { throw .versionChanged(room.id, version: room.version) }
    }
}

extension Room {
    /// Another one after each event of the room, and never the same again for its id. Likes, heartbeats and viewers come and go without.
    package var version: String { "\(String(self.createdAt, radix: 36)).\(self.lastEvent)" }
}
