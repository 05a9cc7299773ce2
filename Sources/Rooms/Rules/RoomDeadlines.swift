/// A room's next timed change if nothing happens before it.
package struct RoomDeadline: Sendable, Equatable {
    package enum Reason: String, Sendable, CaseIterable {
        /// These end the room, for the reason of the same name.
        case neverStarted, graceOver, maxDuration, heartbeatLost, ownerOffline
        /// The owner's heartbeats have stopped: the owner counts as away from then on.
        case ownerAway
        /// A stream's ban ends, and with it a forbidden room's.
        case resumeTime
        /// An ended room is forgotten.
        case retention
    }

    /// Milliseconds since 1970.
    package let at: Int64
    package let reason: Reason
}

/// Timed changes of a room.
extension RoomRules {
    /// The earliest ``RoomDeadline`` of the room; nil if it has none.
    package static func deadline(of room: Room) -> RoomDeadline? {
        self.deadlines(of: room).min { $0.at < $1.at }.map { RoomDeadline(at: $0.at, reason: $0.what.reason) }
    }

    /// When the countdown that renewals extend ends; nil in states without one. Other deadlines may end the room earlier.
    package static func countdownEnd(of room: Room) -> Int64? {
        switch room.state {
        case .created: room.waitingSince.later(by: room.policy.neverStartedMs)
        case .live: room.durationFrom?.later(by: room.policy.maxDurationMs)
        case .interrupted: room.interruptionEnds
        case .forbidden, .expired, .closed: nil
        }
    }

    /// When an ended room is forgotten.
    package static func retentionEnd(of room: Room) -> Int64 {
        if room.state == .closed, let kept = room.keptUntil { return kept }
        return (room.endedAt ?? room.createdAt).later(by: room.policy.retentionMs)
    }

    /// The instant of the earliest deadline, in milliseconds since 1970; nil if the room has none. No ``RoomInput/tick`` acts earlier.
    /// `isAlone`: of those that ``RoomInput/tickAlone`` applies.
    package static func nextDeadline(of room: Room, isAlone: Bool = false) -> Int64? {
        self.deadlines(of: room).filter { !(isAlone && $0.what.isMovable) }.map(\.at).min()
    }

    /// Applies due deadlines in order, up to the first change of state. Tick again until none is left.
    package static func tick(_ room: inout Room, _ now: Int64, isAlone: Bool = false) -> [RoomEffect] {
        var effects: [RoomEffect] = []
        let state = room.state
        while room.state == state,
            let due = self.deadlines(of: room).filter({ $0.at <= now && !(isAlone && $0.what.isMovable) }).min(by: { $0.at < $1.at })
        {
            switch due.what {
            case .end(let reason): effects += self.end(&room, .expired, reason, now)
            case .ownerAway: effects += self.ownerWent(&room, at: due.at)
            case .bansEnd:
                let freed = room.slots.indices.filter { room.slots[$0].forbiddenUntil.map { $0 <= now } ?? false }
                effects += self.free(freed, .resumeTime, &room, now)
            case .forget: return effects + [.delete]
            }
        }
        return effects
    }

    private enum What {
        case end(StateReason)
        /// The owner's heartbeats have stopped.
        case ownerAway
        /// A slot's ban ends. The first such end also frees a forbidden room.
        case bansEnd
        case forget

        /// Whether heartbeats, pushes or renewals move it.
        var isMovable: Bool {
            switch self {
            case .end, .ownerAway: true
            case .bansEnd, .forget: false
            }
        }

        var reason: RoomDeadline.Reason {
            switch self {
            case .end(.neverStarted): .neverStarted
            case .end(.maxDuration): .maxDuration
            case .end(.heartbeatLost): .heartbeatLost
            case .end(.ownerOffline): .ownerOffline
            case .end: .graceOver
            case .ownerAway: .ownerAway
            case .bansEnd: .resumeTime
            case .forget: .retention
            }
        }
    }

    /// All deadlines, in order of precedence for the same instant.
    private static func deadlines(of room: Room) -> [(at: Int64, what: What)] {
        let policy = room.policy
        let (window, overflow) = policy.heartbeatMs.multipliedReportingOverflow(by: Int64(policy.heartbeatMisses))
        let silence = overflow ? Int64.max : window
        let bansEnd = room.slots.compactMap(\.forbiddenUntil)
        var deadlines: [(at: Int64, what: What)] = []
        if let first = bansEnd.min() { deadlines.append((first, .bansEnd)) }
        if room.state.isTerminal {
            deadlines.append((self.retentionEnd(of: room), .forget))
            return deadlines
        }
        if let seen = room.ownerSeenAt, room.ownerAwaySince == nil { deadlines.append((seen.later(by: silence), .ownerAway)) }
        if room.state == .live || room.state == .interrupted, let from = room.durationFrom {
            deadlines.append((from.later(by: policy.maxDurationMs), .end(.maxDuration)))
        }
        var earliest = Int64.min
        switch room.state {
        case .created: deadlines.append((room.waitingSince.later(by: policy.neverStartedMs), .end(.neverStarted)))
        case .interrupted:
            let since = room.interruptedAt ?? room.waitingSince
            earliest = since.later(by: policy.waitMs(for: .publisherLost))
            deadlines.append((room.interruptionEnds ?? earliest, .end(.graceOver)))
        // While a stream is active, no other absence ends the room.
        case .live, .forbidden, .expired, .closed: return deadlines
        }
        if let beat = room.heartbeatAt { deadlines.append((max(beat.later(by: silence), earliest), .end(.heartbeatLost))) }
        if let away = room.ownerAwaySince { deadlines.append((max(away.later(by: policy.ownerOfflineMs), earliest), .end(.ownerOffline))) }
        return deadlines
    }
}
