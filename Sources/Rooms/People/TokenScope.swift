package import Support

/// The part of the server that a token may see and change. A value.
///
/// A room belongs to it by its id and its app, a stream by its name and its app: a room's streams are named after it. A stream of a talk channel
/// belongs to its room.
package struct TokenScope: Sendable, Equatable {
    /// Names of apps; empty: any.
    package let apps: [String]
    /// Prefixes of room ids and stream names; empty: any.
    package let rooms: [String]

    package static let all = TokenScope(apps: [], rooms: [])
    /// Most apps, and most prefixes.
    package static let most = 16

    package init(apps: [String], rooms: [String]) {
        self.apps = apps
        self.rooms = rooms
    }

    package var isLimited: Bool { !self.apps.isEmpty || !self.rooms.isEmpty }

    /// Compares bytes, so that text which only looks alike is another name.
    package func holds(name: String) -> Bool { self.rooms.isEmpty || self.rooms.contains { name.utf8.starts(with: $0.utf8) } }

    package func holds(app: String?) -> Bool {
        self.apps.isEmpty || app.map { app in self.apps.contains { $0.exact == app.exact } } ?? false
    }

    /// Not for streams of the talk channel, whose room has an app of its own.
    package func holds(_ path: StreamPath) -> Bool { self.holds(app: path.app) && self.holds(name: path.name) }

    package func holds(_ room: Room) -> Bool {
        self.holds(name: room.id.rawValue) && room.slots.allSatisfy { self.holds(app: $0.app) }
    }

    package func holds(_ event: RoomEvent) -> Bool { self.holds(app: event.app, subject: event.subject) }

    /// The app and subject of an event. The server's own events have neither, and only an unlimited token covers them.
    package func holds(app: String?, subject: String?) -> Bool {
        guard self.isLimited else { return true }
        return self.holds(app: app) && subject.map { self.holds(name: $0) } ?? false
    }

    /// Throws for names that no app or room can have, and for too many.
    package func check() throws(FieldError) {
        for (field, list) in [("apps", self.apps), ("rooms", self.rooms)] {
            guard list.count <= Self.most else { throw FieldError(field, "\(list.count)", "expected at most \(Self.most)") }
            for text in list where !RoomID.isID(text) { throw FieldError(field, text, "expected 1 to 64 of A-Z a-z 0-9 _ -") }
        }
    }
}
