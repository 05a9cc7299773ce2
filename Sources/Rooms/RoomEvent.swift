/// What happened, once: numbered in its room and over all rooms, stored before it is told.
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
        case memberJoined = "member.join"
        case memberLeft = "member.leave"
        case memberKicked = "member.kick"
        /// The first frames of a stream are in a recording.
        case recordStarted = "record.started"
        /// A recording's file is complete.
        case recordFinished = "record.finished"
        case recordFailed = "record.failed"
        /// Nothing more is recorded of the stream.
        case recordEnded = "record.ended"
        /// A picture of a stream was taken by itself.
        case snapshotTaken = "snapshot.taken"
        /// A link to another server begins to be kept up.
        case relayStarted = "relay.started"
        /// Media goes over it.
        case relayConnected = "relay.connected"
        /// It does not any more, or did not get so far; it is tried again.
        case relayInterrupted = "relay.interrupted"
        /// It is not kept up any more.
        case relayStopped = "relay.stopped"
        /// The right to speak in the talk channel: given, refused, taken away, given back.
        case floorGranted = "talk.floor.granted"
        case floorDenied = "talk.floor.denied"
        case floorRevoked = "talk.floor.revoked"
        case floorReleased = "talk.floor.released"
        /// The machine's clock was set by more than a minute: room time goes on as it was until that has held, and follows at `adoptsAt`.
        case clockLeapt = "clock.leapt"
        /// Never made: only stores of earlier versions hold it.
        case clockAdopted = "clock.adopted"

        /// Exactly one of these belongs to each change of a room's state.
        package var isTransition: Bool {
            switch self {
            case .roomCreated, .roomLive, .roomInterrupted, .roomResumed, .roomForbidden, .roomUnforbidden, .roomExpired, .roomClosed: true
            default: false
            }
        }

        /// Those that have a counterpart among Tencent's callbacks.
        var isTencents: Bool {
            switch self {
            case .streamBegin, .streamEnd, .recordStarted, .recordFinished, .recordFailed, .recordEnded, .snapshotTaken, .relayStarted,
                .relayConnected, .relayInterrupted, .relayStopped:
                true
            default: false
            }
        }
    }

    /// Grows over all rooms and is never used twice: the place to resume from.
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
}
