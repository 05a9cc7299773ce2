import HTTPAPI
import Rooms

/// The API document's description of one kind of event. A value.
///
/// The store writes the data as text (`RoomTransaction` and its extensions). Tests compare what it wrote with these forms.
struct EventForm: Sendable {
    /// The thing that an event of this kind belongs to.
    enum Scope: Sendable {
        /// A room.
        case room
        /// A stream, which may have a room.
        case stream
        /// The server itself.
        case server
    }

    /// A sentence that describes the event.
    let help: String
    let scope: Scope
    /// The schema of `data`.
    let data: Schema

    init(_ scope: Scope, _ data: Schema, _ help: String) {
        self.scope = scope
        self.data = data
        self.help = help
    }
}

extension RoomEvent.Kind {
    /// A new kind needs a line here; the OpenAPI document and its examples follow from it.
    var form: EventForm {
        switch self {
        case .roomCreated: EventForm(.room, EventData.roomCreated, "A room was created, or its next instance began.")
        case .roomLive: EventForm(.room, EventData.roomLive, "The room's first media arrived.")
        case .roomInterrupted: EventForm(.room, EventData.roomInterrupted, "The room's last running stream went away.")
        case .roomResumed: EventForm(.room, EventData.roomResumed, "Media arrived in an interrupted room.")
        case .roomForbidden: EventForm(.room, EventData.roomForbidden, "All streams of the room are forbidden.")
        case .roomUnforbidden: EventForm(.room, EventData.roomUnforbidden, "A forbidden room may be pushed to again.")
        case .roomExpired: EventForm(.room, EventData.roomExpired, "The room expired; a valid push begins its next instance.")
        case .roomClosed: EventForm(.room, EventData.roomClosed, "The room was closed.")
        case .roomUpdated: EventForm(.room, EventData.roomUpdated, "Fields of the room were changed.")
        case .roomRenewed: EventForm(.room, EventData.roomRenewed, "The room's countdown was restarted or extended.")
        case .roomDeleted: EventForm(.room, EventData.roomDeleted, "The room was deleted, by a call or because its retention is over.")
        case .ownerOffline: EventForm(.room, EventData.roomOwner, "The room's owner went away.")
        case .ownerOnline: EventForm(.room, EventData.roomOwner, "The room's owner is back.")
        case .streamBegin: EventForm(.room, EventData.streamBegin, "The first media of a push arrived.")
        case .streamEnd: EventForm(.room, EventData.streamEnd, "A push that had media ended.")
        case .streamForbidden: EventForm(.stream, EventData.streamForbidden, "Nobody may push to the stream, or its ban was changed.")
        case .streamResumed: EventForm(.stream, EventData.streamResumed, "The stream's ban ended.")
        case .streamHealth: EventForm(.room, EventData.streamHealth, "The verdict on a running push changed.")
        case .memberJoined: EventForm(.room, EventData.member, "A user joined the room.")
        case .memberLeft: EventForm(.room, EventData.member, "A user left the room.")
        case .memberKicked: EventForm(.room, EventData.member, "A user was removed from the room.")
        case .sessionKicked: EventForm(.stream, EventData.sessionKicked, "A call ended a connection, which may come back.")
        case .recordStarted: EventForm(.stream, EventData.recordStarted, "The first frames of a stream are in a recording.")
        case .recordFinished: EventForm(.stream, EventData.recordFinished, "A recording's file is complete.")
        case .recordFailed: EventForm(.stream, EventData.recordFailed, "A recording's file ended early, or the recording could not begin.")
        case .recordEnded: EventForm(.stream, EventData.recordEnded, "The recording of a stream ended.")
        case .snapshotTaken: EventForm(.stream, EventData.snapshotTaken, "A picture of the stream was taken at an interval.")
        case .linkStarted: EventForm(.stream, EventData.linkUp, "The server begins to keep up a link to another server.")
        case .linkConnected: EventForm(.stream, EventData.linkUp, "Media flows over the link.")
        case .linkInterrupted: EventForm(.stream, EventData.linkInterrupted, "Media stopped or never flowed; the link is retried.")
        case .linkStopped: EventForm(.stream, EventData.linkStopped, "The link is no longer kept up.")
        case .floorGranted: EventForm(.room, EventData.floorGranted, "A participant may speak.")
        case .floorDenied: EventForm(.room, EventData.floorDenied, "A participant's request to speak was refused.")
        case .floorRevoked: EventForm(.room, EventData.floorRevoked, "The right to speak was taken from a participant.")
        case .floorReleased: EventForm(.room, EventData.floorReleased, "A participant gave up the right to speak, or fell silent.")
        case .queueChanged: EventForm(.room, EventData.queueChanged, "A place in a gathering's queue was taken, changed or given up.")
        case .ticketOpened: EventForm(.room, EventData.ticket, "A member of a gathering asks another for something.")
        case .ticketApproved: EventForm(.room, EventData.ticket, "The member that was asked has approved.")
        case .ticketRejected: EventForm(.room, EventData.ticket, "The member that was asked has rejected.")
        case .ticketExpired: EventForm(.room, EventData.ticket, "Nobody answered in time, or one of the two has left.")
        case .memberRole: EventForm(.room, EventData.memberRole, "A member of a class has another role.")
        case .assistantTransferred: EventForm(.room, EventData.assistantTransferred, "Another member of a class is its assistant.")
        case .deviceChanged: EventForm(.room, EventData.deviceChanged, "A member's camera or microphone was switched on or off.")
        case .displayChanged: EventForm(.room, EventData.displayChanged, "A class sees something else.")
        case .boardCreated: EventForm(.room, EventData.board, "A class has another whiteboard.")
        case .boardDeleted: EventForm(.room, EventData.board, "A class's whiteboard was deleted.")
        case .boardTurned: EventForm(.room, EventData.board, "A class's whiteboard shows another page.")
        case .turnOffered: EventForm(.room, EventData.turn, "The first player of a machine's queue may begin.")
        case .turnAccepted: EventForm(.room, EventData.turn, "The player begins.")
        case .turnDeclined: EventForm(.room, EventData.turn, "The player does not want to begin, or has left.")
        case .turnExpired: EventForm(.room, EventData.turn, "The player did not answer in time.")
        case .gameStarted: EventForm(.room, EventData.turn, "A game of a machine began.")
        case .gameDropped: EventForm(.room, EventData.gameDropped, "The claw goes down, by the player or because the time was over.")
        case .gameResult: EventForm(.room, EventData.gameResult, "The machine told the result of a game.")
        case .gameEnded: EventForm(.room, EventData.gameEnded, "A game of a machine is over.")
        case .clockLeapt: EventForm(.server, EventData.clockLeapt, "The machine's clock was set by more than a minute.")
        }
    }

    /// "RoomLive", the prefix of its schemas' names.
    var schemaName: String {
        self.rawValue.split(separator: ".").map { $0.prefix(1).uppercased() + $0.dropFirst() }.joined()
    }
}
