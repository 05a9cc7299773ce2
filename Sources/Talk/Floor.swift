/// A participant's role in its room. Later roles in this order have priority on the floor. The host is the room's owner.
package enum TalkRole: Int, Sendable, Comparable, CaseIterable {
    case guest
    case coHost
    case host

    package static func < (left: TalkRole, right: TalkRole) -> Bool { left.rawValue < right.rawValue }
}

/// How many may speak at the same time.
package enum FloorMode: String, Sendable, CaseIterable {
    /// Everyone, up to ``FloorSettings/maxOpen``.
    case open
    /// Push to talk: one at a time.
    case ptt
}

/// The floor rules that a room can choose. A plain value; values out of range are clamped.
package struct FloorSettings: Sendable, Equatable {
    package let mode: FloorMode
    /// Open microphones, 1…64.
    package let maxOpen: Int
    /// Longest hold of the floor in ptt: milliseconds, a second to an hour.
    package let maxHoldMs: Int64
    /// Milliseconds without packets after which the floor is free again in ptt, 100…60,000.
    package let idleMs: Int64
    /// Whether a higher role takes the floor from a lower one in ptt.
    package let preempts: Bool
    /// Participants that may wait, 0…256.
    package let maxQueue: Int

    package init(
        mode: FloorMode = .open, maxOpen: Int = 8, maxHoldMs: Int64 = 30_000, idleMs: Int64 = 2_000, preempts: Bool = false,
        maxQueue: Int = 32
    ) {
        self.mode = mode
        self.maxOpen = min(max(maxOpen, 1), 64)
        self.maxHoldMs = min(max(maxHoldMs, 1_000), 3_600_000)
        self.idleMs = min(max(idleMs, Self.idleRange.lowerBound), Self.idleRange.upperBound)
        self.preempts = preempts
        self.maxQueue = min(max(maxQueue, 0), 256)
    }

    /// Milliseconds.
    package static let idleRange: ClosedRange<Int64> = 100...60_000

    /// How many may hold the floor at once.
    package var capacity: Int { self.mode == .ptt ? 1 : self.maxOpen }
}

/// An input to a floor: its participants' streams, its users' requests, or time.
package enum FloorInput: Sendable, Equatable {
    /// A participant publishes. For clients without a control channel this is a request.
    case published(ParticipantID, TalkRole)
    /// It no longer publishes, or is gone, which releases the floor.
    case unpublished(ParticipantID)
    case requested(ParticipantID, TalkRole)
    case released(ParticipantID)
    /// A packet of audio arrived.
    case spoke(ParticipantID)
    /// A holder passes the floor to another, who does not wait for it.
    case handedOver(from: ParticipantID, to: ParticipantID, TalkRole)
    /// A moderator takes the floor from it, or its place in the queue.
    case revoked(ParticipantID, by: ParticipantID?)
    /// It may not speak until ``unmuted(_:)``.
    case muted(ParticipantID, by: ParticipantID?)
    /// It may speak again; if it publishes, that is a request.
    case unmuted(ParticipantID)
    /// It was thrown out; only a mute outlives this.
    case kicked(ParticipantID, by: ParticipantID?)
    case settings(FloorSettings)
    /// A request refused by a rule outside the floor. `by`: the holder who tried to hand over.
    case refused(ParticipantID, FloorReason, by: ParticipantID?)
    /// The room's talk ends.
    case closed
    /// Time has passed.
    case tick
}

/// The reason for an event on a floor.
package enum FloorReason: String, Sendable, CaseIterable {
    /// Granted: the floor was free.
    case free
    /// Granted: it was the next in the queue.
    case turn
    /// Granted or released: a holder passed the floor on.
    case handedOver
    /// Granted or revoked: a higher role preempted the holder. Queued: the preempted holder waits again.
    case preempted
    /// Released or withdrawn: it asked for that. Queued: the floor is taken.
    case asked
    case unpublished
    /// Released: no packets came.
    case idle
    case maxHold
    case muted
    case kicked
    /// Revoked by a moderator.
    case moderator
    /// Revoked: the mode changed from open to ptt. Queued: that holder waits again.
    case modeChanged
    /// Revoked: fewer may speak now. Queued: that holder waits again.
    case limit
    /// Denied, or withdrawn when the queue was shortened.
    case queueFull
    /// Denied: only a holder can hand over.
    case notHolding
    /// Denied: who only listens, or is away, has no voice that could be heard.
    case notPublishing
    /// Denied: the participant is still banned.
    case banned
    case closed
}

/// An event on a floor. A floor's events are its audit trail: each `granted` is followed by exactly one `released` or `revoked` of the same
/// participant. A plain value.
package struct FloorEvent: Sendable, Equatable {
    package enum Kind: String, Sendable, CaseIterable {
        case granted
        /// A request was refused.
        case denied
        /// The holder gave the floor up, or fell silent.
        case released
        /// The floor was taken from the holder.
        case revoked
        case queued
        /// It stopped waiting without having been granted the floor.
        case withdrawn
    }

    package var kind: Kind
    package var participant: ParticipantID
    package var reason: FloorReason
    /// The other participant involved: a moderator, or the other side of a handover or preemption.
    package var by: ParticipantID?
    /// Milliseconds of the caller's clock.
    package var atMs: Int64
    /// Milliseconds of the hold; only for `released` and `revoked`.
    package var heldMs: Int64?
    /// Position in the queue, from 1; only for `queued`.
    package var position: Int?
}

/// A participant that holds the floor. A plain value.
package struct FloorHolder: Sendable, Equatable {
    package var id: ParticipantID
    package var role: TalkRole
    /// Milliseconds: when the floor was granted.
    package var sinceMs: Int64
    /// Milliseconds: when ``FloorSettings/maxHoldMs`` began to count.
    var countedMs: Int64
    /// Milliseconds: the last packet, or the grant.
    var heardMs: Int64
}

/// Whether a participant holds the floor, waits for it, or neither.
package enum FloorStatus: Sendable, Equatable {
    case holding(sinceMs: Int64)
    /// From 1.
    case waiting(position: Int)
    case none
}
