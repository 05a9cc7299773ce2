/// The versions of a room that a change is meant for: the API's If-Match and If-None-Match. A value.
package struct RoomCondition: Sendable, Equatable {
    /// The versions that it is not meant for.
    package enum Excluded: Sendable, Equatable {
        case none
        case versions(Set<String>)
        /// It is meant for a room that is not there.
        case all
    }

    /// Nil: any.
    package let versions: Set<String>?
    package let excluded: Excluded

    package init(versions: Set<String>?, excluded: Excluded = .none) {
        self.versions = versions
        self.excluded = excluded
    }

    /// Throws ``RegistryError/versionChanged(_:version:)`` or ``RegistryError/versionExcluded(_:version:)`` for a room of another version.
    func check(_ room: Room) throws(RegistryError) {
        if let versions, !versions.contains(room.version) { throw .versionChanged(room.id, version: room.version) }
        let isExcluded =
            switch self.excluded {
            case .none: false
            case .versions(let versions): versions.contains(room.version)
            case .all: true
            }
        if isExcluded { throw .versionExcluded(room.id, version: room.version) }
    }
}

extension Room {
    /// Another one after each event of the room and when its times move with the clock, and never the same again for its id. Likes,
    /// heartbeats and viewers come and go without.
    package var version: String { "\(String(self.createdAt, radix: 36)).\(self.lastEvent)" }
}
