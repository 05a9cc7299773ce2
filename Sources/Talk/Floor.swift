/// What a participant is in its room; who comes later in this order goes first on the floor. The host is the room's owner.
package enum TalkRole: Int, Sendable, Comparable, CaseIterable {
    case guest
    case coHost
    case host

    package static func < (left: TalkRole, right: TalkRole) -> Bool { left.rawValue < right.rawValue }
}

/// Who may speak at the same time.
package enum FloorMode: String, Sendable, CaseIterable {
    /// Everyone, up to ``FloorSettings/maxOpen``.
    case open
    /// Push to talk: one at a time.
    case ptt
}

/// A floor's rules that a room can choose. A plain value; whatever is out of range is brought into it.
package struct FloorSettings: Sendable, Equatable {
    package let mode: FloorMode
    /// Open microphones, 1…64.
    package let maxOpen: Int
    /// Milliseconds for which the floor can be held in ptt, a second to an hour.
    package let maxHoldMs: Int64
    /// Milliseconds without packets after which the floor is free again in ptt, 100…60,000.
    package let idleMs: Int64
    /// Whether a higher role takes the floor from a lower one in ptt.
    package let preempts: Bool
    /// Participants that wait, 0…256.
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

    /// How many hold the floor at most.
    package var capacity: Int { self.mode == .ptt ? 1 : self.maxOpen }
}

/// What is done to a floor: facts of its participants' streams, calls of its users, and time.
package enum FloorInput: Sendable, Equatable {
    /// A participant publishes. For clients without a control channel this is a request.
    case published(ParticipantID, TalkRole)
    /// It publishes no more, or is gone. This is a release.
    case unpublished(ParticipantID)
    case requested(ParticipantID, TalkRole)
    case released(ParticipantID)
    /// A packet of audio came.
    case heard(ParticipantID)
    /// A holder gives the floor to another, who does not wait for it.
    case handedOver(from: ParticipantID, to: ParticipantID, TalkRole)
    /// Taken from a holder, or out of the queue, by a moderator.
    case revoked(ParticipantID, by: ParticipantID?)
    /// May not speak until ``unmuted(_:by:)``.
    case muted(ParticipantID, by: ParticipantID?)
    /// May speak again; if it publishes, that is a request.
    case unmuted(ParticipantID)
    /// Thrown out: nothing of it is kept.
    case kicked(ParticipantID, by: ParticipantID?)
    case settings(FloorSettings)
    /// A request that came to nothing by another rule than the floor's. `by`: who was about to hand over.
    case refused(ParticipantID, FloorReason, by: ParticipantID?)
    /// The room's talk ends.
    case closed
    /// The clock.
    case tick
}

/// Why something happened on a floor.
package enum FloorReason: String, Sendable, CaseIterable {
    /// Granted: the floor was free.
    case free
    /// Granted: it was the next in the queue.
    case turn
    /// Granted or released.
    case handedOver
    /// Granted or revoked: a higher role took it.
    case preempted
    /// Released or withdrawn: it asked for that. Queued: the floor is taken.
    case asked
    case unpublished
    /// Released: no packets.
    case idle
    case maxHold
    case muted
    case kicked
    /// Revoked by a moderator.
    case moderator
    /// Revoked: from open to ptt.
    case modeChanged
    /// Revoked: fewer may speak now.
    case limit
    /// Denied.
    case queueFull
    /// Denied: only a holder can hand over.
    case notHolding
    /// Denied: it was thrown out for a time that is not over.
    case banned
    case closed
}

/// What happened on a floor. All of a floor's events are its audit trail: each `granted` is followed by exactly one `released` or `revoked`
/// of the same participant. A plain value.
package struct FloorEvent: Sendable, Equatable {
    package enum Kind: String, Sendable, CaseIterable {
        case granted
        /// A request came to nothing.
        case denied
        /// The holder gave it up, or fell silent.
        case released
        /// It was taken from the holder.
        case revoked
        case queued
        /// It does not wait any more, without having been granted.
        case withdrawn
    }

    package var kind: Kind
    package var participant: ParticipantID
    package var reason: FloorReason
    /// Who did it to the participant: a moderator, who handed over, who came in between.
    package var by: ParticipantID?
    /// Milliseconds, of the caller's clock.
    package var atMs: Int64
    /// Milliseconds for which it was held; of `released` and `revoked`.
    package var heldMs: Int64?
    /// In the queue, from 1; of `queued`.
    package var position: Int?
}

/// One who has the floor. A plain value.
package struct FloorHolder: Sendable, Equatable {
    package var id: ParticipantID
    package var role: TalkRole
    /// Milliseconds: when it was granted.
    package var sinceMs: Int64
    /// Milliseconds: when the hold began to count.
    var countedMs: Int64
    /// Milliseconds: of the last packet, or of the grant.
    var heardMs: Int64
}

/// Where a participant stands.
package enum FloorStanding: Sendable, Equatable {
    case holding(sinceMs: Int64)
    /// From 1.
    case waiting(position: Int)
    case none
}
