/// The room versions that a change applies to: the API's If-Match and If-None-Match. A value.
package struct RoomCondition: Sendable, Equatable {
    /// The versions to which the change does not apply.
    package enum Excluded: Sendable, Equatable {
        case none
        case versions(Set<String>)
        /// Excludes every existing room.
        case all
    }

    /// Nil allows any version.
    package let versions: Set<String>?
    package let excluded: Excluded

    package init(versions: Set<String>?, excluded: Excluded = .none) {
        self.versions = versions
        self.excluded = excluded
    }

    /// Throws ``RegistryError/versionChanged(_:version:)`` or ``RegistryError/versionExcluded(_:version:)`` if `room` does not match.
    package func check(_ room: Room) throws(RegistryError) {
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
    /// Changes with each event of the room and when its times move with the clock; never repeats for its id. Likes, heartbeats and viewers
    /// do not change it.
    package var version: String { "\(String(self.createdAt, radix: 36)).\(self.lastEvent)" }
}
