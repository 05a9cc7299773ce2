package import Support

/// An app's gathering as the store keeps it. A value.
package struct StoredGathering: Sendable, Equatable {
    /// The kind and the room: "plain-cam1".
    package let id: String
    package let kind: String
    package let roomID: RoomID
    /// JSON that only the app reads.
    package let state: String
    /// Milliseconds since 1970.
    package let createdAt: Int64

    package init(id: String, kind: String, roomID: RoomID, state: String, createdAt: Int64) {
        self.id = id
        self.kind = kind
        self.roomID = roomID
        self.state = state
        self.createdAt = createdAt
    }
}

/// A gathering's change and its consequences for the room: stored together or not at all. A value.
package struct GatheringChange: Sendable, Equatable {
    package struct Event: Sendable, Equatable {
        package let kind: RoomEvent.Kind
        package let data: [JSONValue.Member]

        package init(_ kind: RoomEvent.Kind, _ data: [JSONValue.Member]) {
            self.kind = kind
            self.data = data
        }
    }

    package let gathering: StoredGathering
    /// Whether the gathering has ended; its row is then deleted.
    package var hasEnded = false
    /// Users who join the room, with their nicks.
    package var joins: [(user: String, nick: String)] = []
    package var leaves: [(user: String, wasKicked: Bool)] = []
    package var events: [Event] = []
    /// Whiteboards whose strokes are deleted.
    package var deletedBoards: [String] = []

    package init(_ gathering: StoredGathering) { self.gathering = gathering }

    package static func == (left: GatheringChange, right: GatheringChange) -> Bool {
        left.gathering == right.gathering && left.hasEnded == right.hasEnded && left.events == right.events
            && left.deletedBoards == right.deletedBoards && left.joins.elementsEqual(right.joins, by: ==)
            && left.leaves.elementsEqual(right.leaves, by: ==)
    }
}

/// A stroke on a whiteboard as the store keeps it. A value.
package struct StoredStroke: Sendable, Equatable {
    /// Continues over all pages of the board.
    package let number: Int64
    package let page: Int64
    /// JSON that only the app reads, in ASCII.
    package let text: String

    package init(number: Int64, page: Int64, text: String) {
        self.number = number
        self.page = page
        self.text = text
    }
}
