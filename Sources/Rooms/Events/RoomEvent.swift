/// A single event, numbered in its room and across all rooms. Stored before it is published.
package struct RoomEvent: Sendable, Equatable {
    package enum Kind: String, Sendable, CaseIterable {
        case roomCreated = "room.created"
        case roomLive = "room.live"
        case roomInterrupted = "room.interrupted"
        /// Interrupted, and live again.
        case roomResumed = "room.resumed"
        case roomForbidden = "room.forbidden"
        /// A forbidden room may be pushed to again.
        case roomUnforbidden = "room.unforbidden"
        case roomExpired = "room.expired"
        case roomClosed = "room.closed"
        /// Not transitions of the room's state:
        case roomUpdated = "room.updated"
        case roomRenewed = "room.renewed"
        case roomDeleted = "room.deleted"
        case ownerOffline = "room.ownerOffline"
        case ownerOnline = "room.ownerOnline"
        case streamBegin = "stream.begin"
        case streamEnd = "stream.end"
        case streamForbidden = "stream.forbidden"
        case streamResumed = "stream.resumed"
        /// The verdict on a running push changed.
        case streamHealth = "stream.health"
        case memberJoined = "member.join"
        case memberLeft = "member.leave"
        case memberKicked = "member.kick"
        /// A call ended a connection.
        case sessionKicked = "session.kick"
        /// The first frames of a stream are in a recording.
        case recordStarted = "record.started"
        /// A recording's file is complete.
        case recordFinished = "record.finished"
        case recordFailed = "record.failed"
        /// Recording of the stream has ended.
        case recordEnded = "record.ended"
        /// A picture of a stream was taken automatically.
        case snapshotTaken = "snapshot.taken"
        /// The server starts to keep up a link to another server.
        case linkStarted = "link.started"
        /// Media flows over the link.
        case linkConnected = "link.connected"
        /// Media stopped, or never flowed; the link is retried.
        case linkInterrupted = "link.interrupted"
        /// The link is no longer kept up.
        case linkStopped = "link.stopped"
        /// The right to speak in the talk channel was granted, denied, revoked or released.
        case floorGranted = "talk.floor.granted"
        case floorDenied = "talk.floor.denied"
        case floorRevoked = "talk.floor.revoked"
        case floorReleased = "talk.floor.released"
        /// A place in a gathering's queue was taken, changed or given up.
        case queueChanged = "queue.changed"
        /// A request in a gathering from one member to another; its answer, or that no answer came in time.
        case ticketOpened = "ticket.opened"
        case ticketApproved = "ticket.approved"
        case ticketRejected = "ticket.rejected"
        case ticketExpired = "ticket.expired"
        /// A class: a member's role, camera and microphone, what everybody sees, and the whiteboards.
        case memberRole = "member.role"
        case assistantTransferred = "assistant.transferred"
        case deviceChanged = "device.changed"
        case displayChanged = "display.changed"
        case boardCreated = "board.created"
        case boardDeleted = "board.deleted"
        case boardTurned = "board.turned"
        /// A machine: turns, and the game.
        case turnOffered = "turn.offered"
        case turnAccepted = "turn.accepted"
        case turnDeclined = "turn.declined"
        case turnExpired = "turn.expired"
        case gameStarted = "game.started"
        case gameDropped = "game.dropped"
        case gameResult = "game.result"
        case gameEnded = "game.ended"
        /// The machine's clock was set by more than a minute. Room time goes on unchanged and follows at `adoptsAt` if the leap holds.
        case clockLeapt = "clock.leapt"

        /// Each change of a room's state has exactly one event of these kinds.
        package var isTransition: Bool {
            switch self {
            case .roomCreated, .roomLive, .roomInterrupted, .roomResumed, .roomForbidden, .roomUnforbidden, .roomExpired, .roomClosed: true
            default: false
            }
        }
    }

    /// Grows across all rooms and is never reused; the cursor to resume from.
    package let id: Int64
    /// Grows by one per event of the room, from 1.
    package let number: Int64
    package let kind: Kind
    /// Nil for streams without a room.
    package let roomID: RoomID?
    package let instance: Int
    /// Milliseconds since 1970.
    package let at: Int64
    /// A JSON object as text.
    package let data: String
    /// The app of the room or stream, for tokens limited to some apps. Nil for the server's own events.
    package let app: String?
    /// The room's id or the stream's name, for tokens limited to some of them. Nil for the server's own events.
    package let subject: String?

    package init(
        id: Int64, number: Int64, kind: Kind, roomID: RoomID?, instance: Int, at: Int64, data: String, app: String? = nil,
        subject: String? = nil
    ) {
        self.id = id
        self.number = number
        self.kind = kind
        self.roomID = roomID
        self.instance = instance
        self.at = at
        self.data = data
        self.app = app
        self.subject = subject
    }
}

/// The part of an event by which a node's own services act. Nodes that share a registry pass it on without the event. A value.
package struct EventMark: Sendable, Equatable {
    /// As ``RoomEvent/id``.
    package let id: Int64
    package let kind: RoomEvent.Kind
    /// Nil for streams without a room.
    package let roomID: RoomID?

    package init(id: Int64, kind: RoomEvent.Kind, roomID: RoomID?) {
        self.id = id
        self.kind = kind
        self.roomID = roomID
    }
}

extension RoomEvent {
    package var mark: EventMark { EventMark(id: self.id, kind: self.kind, roomID: self.roomID) }
}
