import Support

/// The states of a room and their transitions.
///
/// ```
/// created --first media--> live --streams end / media idle / pause--> interrupted --media--> live
/// created --never started--> expired      interrupted --grace over--> expired      live --max duration--> expired
/// any open --close--> closed      any open --forbid--> forbidden --resume or its time--> created      forbidden --close--> closed
/// expired --valid push--> created (next instance)      expired --close--> closed      expired --forbid--> forbidden (next instance)
/// ```
package enum RoomState: String, Sendable, Codable, CaseIterable {
    case created, live, interrupted, forbidden, expired, closed

    /// Expired and closed rooms have ended.
    package var isTerminal: Bool { self == .expired || self == .closed }
}

/// The reason for a room's state: one word for API, events and logs.
package enum StateReason: String, Sendable, Codable, CaseIterable {
    // created
    case created, reopened
    /// A forbidden room was resumed by a call.
    case resumed
    /// A forbidden room reached its resume time.
    case resumeTime
    // live
    case media
    // interrupted
    /// The publisher's connection broke.
    case publisherLost
    /// The publisher ended its stream.
    case stopped
    /// Connected, but silent.
    case mediaIdle
    /// Announced by the client or the API.
    case paused
    /// Cut by the API; may push again.
    case dropped
    /// The server was restarted while the room was live.
    case serverRestart
    /// The node of a cluster that had the push was lost: another one took the room over.
    case nodeLost
    // forbidden
    case forbidden
    // expired
    case neverStarted, graceOver, maxDuration, heartbeatLost, ownerOffline
    /// By the API.
    case expired
    // closed
    case closed
}

/// The reason a push ended, which decides what the room does next.
package enum PushEnd: String, Sendable, Codable, CaseIterable {
    case clientStopped, connectionLost, mediaIdle, takenOver, dropped, forbidden, roomEnded, protocolError, serverShutdown, serverRestart
    /// Its node of the cluster was lost, and another one ended the push.
    case nodeLost
    /// The relay rejected the push after the room had admitted it.
    case refused

    /// The class of interruption, in the numbers that cloud live services use in their callbacks.
    package var code: Int {
        switch self {
        case .clientStopped: 1
        case .connectionLost: 12
        case .mediaIdle: 8
        case .takenOver, .dropped, .roomEnded, .forbidden: 21
        case .refused: 18
        case .protocolError: 6
        case .serverShutdown, .serverRestart, .nodeLost: 5
        }
    }

    /// Refines ``code`` 21: ended by a call, forbidden by a call, replaced by a new push.
    package var subcode: Int? {
        switch self {
        case .dropped, .roomEnded: 100
        case .forbidden: 101
        case .takenOver: 102
        case .clientStopped, .connectionLost, .mediaIdle, .protocolError, .serverShutdown, .serverRestart, .nodeLost, .refused: nil
        }
    }
}

/// A room: its streams, pushes, viewers, policy and end. A value; the registry owns the stored one.
///
/// All times are milliseconds since 1970 by the registry's clock.
package struct Room: Sendable, Equatable {
    /// One of the room's streams. Slot 1 is `live/<roomId>`, slot n `live/<roomId>-n`.
    package struct Slot: Sendable, Equatable, Codable {
        package let number: Int
        package let app: String
        package let name: String
        /// The newest admitted push, from admission to end.
        package var sequence: Int64?
        /// Earlier pushes that have not ended, oldest first, at most ``mostEarlier``. These are ghosts about to be taken over, or the
        /// holder while the relay rejects the newest.
        package var earlier: [Int64] = []
        /// Whether the stream runs: it has media and is neither silent nor paused. A takeover does not interrupt it.
        package var isActive = false
        /// The reason for the stream's absence after it has run.
        package var awayReason: StateReason?
        /// When the room stops waiting for the stream to return.
        package var awayUntil: Int64?
        /// Nobody may push to this slot before this time.
        package var forbiddenUntil: Int64?
        package var forbidReason: String?
        package var isForbidden: Bool { self.forbiddenUntil != nil }
        package static let mostEarlier = 4

        package var path: StreamPath { StreamPath(app: self.app, name: self.name) }

        package init(number: Int, app: String, name: String) {
            self.number = number
            self.app = app
            self.name = name
        }
    }

    package let id: RoomID
    /// Counts the lives of this id, from 1. A push to an expired room's name begins the next one.
    package var instance = 1
    package var state = RoomState.created
    package var reason = StateReason.created
    /// User id; the owner's presence counts for `ownerOffline`.
    package var owner: String?
    package var title = ""
    /// A JSON object as text, at most 4 KB.
    package var custom = "{}"
    package var isPublic = true
    /// The device that pushes slot 1.
    package var deviceUid: String?
    /// Whether a push without a room created this one.
    package var isAdHoc = false
    /// Who created it by a call, as the audit names callers ("token:app"): a token of role backend operates its own rooms. Nil if a push did.
    package var creator: String?
    package var slots: [Slot]
    package var policy = RoomPolicy()

    package var createdAt: Int64
    /// When the countdown to `neverStarted` began: creation, renewal or the end of a ban.
    package var waitingSince: Int64
    /// First media of this instance; renewals move it.
    package var durationFrom: Int64?
    /// When the room went live; an interruption does not reset it.
    package var liveSince: Int64?
    package var interruptedAt: Int64?
    /// When the interruption ends the room.
    package var interruptionEnds: Int64?
    /// The earliest end of the current interruption, whatever the streams do, as a renewal promises it. For a closed room, the end of its retention
    /// if the clock was set since.
    package var keptUntil: Int64?
    package var endedAt: Int64?
    /// Last heartbeat from anyone in this instance.
    package var heartbeatAt: Int64?
    /// Last heartbeat of the owner while present; nil if away or present only by joining.
    package var ownerSeenAt: Int64?
    /// When the owner, once seen, went away; nil while present.
    package var ownerAwaySince: Int64?
    /// For a forbidden room, when its first ban ends.
    package var forbiddenUntil: Int64?
    package var forbidReason: String?
    /// Peak concurrent viewers in this instance.
    package var peak = 0
    package var likes = 0
    /// Members currently joined through the API.
    package var members = 0
    /// The number of the room's newest event.
    package var lastEvent: Int64 = 0

    package init(id: RoomID, slots: [Slot], at now: Int64) {
        self.id = id
        self.slots = slots
        self.createdAt = now
        self.waitingSince = now
    }

    /// The usual slots of a room with this id.
    package static func slots(of id: RoomID, app: String = "live", count: Int = 1) -> [Slot] {
        (1...max(1, count)).map { Slot(number: $0, app: app, name: $0 == 1 ? id.rawValue : "\(id.rawValue)-\($0)") }
    }

    /// The wait for a slot's publisher.
    package struct Wait: Sendable, Equatable {
        /// When the slot's viewers leave if the publisher has not returned, in milliseconds since 1970.
        package let untilMs: Int64
        /// Whether the room ends then, which removes its viewers. Otherwise other slots keep it live.
        package let endsRoom: Bool

        package init(untilMs: Int64, endsRoom: Bool) {
            self.untilMs = untilMs
            self.endsRoom = endsRoom
        }
    }

    /// The wait for the slot's publisher; nil if it is not away.
    package func wait(for slot: Slot) -> Wait? {
        switch self.state {
        case .interrupted: self.interruptionEnds.map { Wait(untilMs: $0, endsRoom: true) }
        case .live: slot.isActive ? nil : slot.awayUntil.map { Wait(untilMs: $0, endsRoom: false) }
        case .created, .forbidden, .expired, .closed: nil
        }
    }
    package var hasActiveStream: Bool { self.slots.contains(where: \.isActive) }
    /// Sets the owner and forgets the former owner's presence.
    package mutating func changeOwner(to owner: String?) {
        guard owner?.exact != self.owner?.exact else { return }
        self.owner = owner
        self.ownerSeenAt = nil
        self.ownerAwaySince = nil
    }
    package func slot(_ path: StreamPath) -> Slot? { self.slots.first { $0.path == path } }

    /// The names by which its device pushes slot 1, beside the slot's own; empty without a device.
    package var devicePaths: [StreamPath] {
        guard let device = self.deviceUid, let app = self.slots.first?.app else { return [] }
        return (app == "live" ? [app] : ["live", app]).map { StreamPath(app: $0, name: device) }
    }

    /// The status in apps' lists: 0 idle, 1 live, 2 disabled, 3 live and recording.
    package func liveStatus(isRecording: Bool) -> Int {
        switch self.state {
        case .live: isRecording ? 3 : 1
        case .forbidden: 2
        case .created, .interrupted, .expired, .closed: 0
        }
    }
}
