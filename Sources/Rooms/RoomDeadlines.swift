/// What time will do to a room next, if nothing happens before.
package struct RoomDeadline: Sendable, Equatable {
    package enum Reason: String, Sendable, CaseIterable {
        /// These end the room, for the reason of the same name.
        case neverStarted, graceOver, maxDuration, heartbeatLost, ownerOffline
        /// The owner's heartbeats have stopped: the owner counts as away from then on.
        case ownerAway
        /// A stream is free again, and a forbidden room with it.
        case resumeTime
        /// An ended room is forgotten.
        case retention
    }

    /// Milliseconds since 1970.
    package let at: Int64
    package let reason: Reason
}

/// What time does to a room.
extension RoomRules {
    /// The earliest of ``RoomDeadline``s; nil while nothing will ever happen by itself.
    package static func deadline(of room: Room) -> RoomDeadline? {
        self.deadlines(of: room).min { $0.at < $1.at }.map { RoomDeadline(at: $0.at, reason: $0.what.reason) }
    }

    /// When the countdown ends that a renewal lengthens, whatever else may end the room before; nil for states that have none.
    package static func countdownEnd(of room: Room) -> Int64? {
        switch room.state {
        case .created: room.waitingSince.later(by: room.policy.neverStartedMs)
        case .live: room.durationFrom?.later(by: room.policy.maxDurationMs)
        case .interrupted: room.interruptionEnds
        case .forbidden, .expired, .closed: nil
        }
    }

    /// When an ended room is forgotten.
    static func retentionEnd(of room: Room) -> Int64 {
        if room.state == .closed, let kept = room.keptUntil { return kept }
        return (room.endedAt ?? room.createdAt).later(by: room.policy.retentionMs)
    }

    /// The earliest instant at which ``RoomInput/tick`` does something, in milliseconds since 1970; nil while nothing will ever happen by itself.
    package static func nextDeadline(of room: Room) -> Int64? { self.deadlines(of: room).map(\.at).min() }

    /// Applies what is due in the order in which it became so, up to the first change of state: tick again until there is nothing more.
    static func tick(_ room: inout Room, _ now: Int64) -> [RoomEffect] {
        var effects: [RoomEffect] = []
        let state = room.state
        while room.state == state, let due = self.deadlines(of: room).filter({ $0.at <= now }).min(by: { $0.at < $1.at }) {
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
        /// A slot's ban ends; the whole room's with its first slot's.
        case bansEnd
        case forget

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

    /// In order of precedence when several fall on the same instant.
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
            earliest = since.later(by: policy.graceMs)
            deadlines.append((room.interruptionEnds ?? earliest, .end(.graceOver)))
        // An active stream outlasts every other absence.
        case .live, .forbidden, .expired, .closed: return deadlines
        }
        if let beat = room.heartbeatAt { deadlines.append((max(beat.later(by: silence), earliest), .end(.heartbeatLost))) }
        if let away = room.ownerAwaySince { deadlines.append((max(away.later(by: policy.ownerOfflineMs), earliest), .end(.ownerOffline))) }
        return deadlines
    }
}
