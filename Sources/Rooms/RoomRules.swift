/// What is done to a room. Facts of its streams, calls of its users, and time.
package enum RoomInput: Sendable, Equatable {
    /// A publisher was let in; nothing has arrived yet.
    case pushAdmitted(slot: Int, sequence: Int64)
    /// First audio or video of the push, or the first after a silence or pause.
    case mediaArrived(slot: Int, sequence: Int64)
    /// Nothing for `mediaIdle`; the connection lives.
    case mediaIdle(slot: Int, sequence: Int64)
    /// Announced by the publisher's client (its slot) or the API (nil: all slots).
    case pauseAnnounced(slot: Int?)
    case pushEnded(slot: Int, sequence: Int64, PushEnd)
    /// By `sender`: a user or device; nil when it did not say.
    case heartbeat(sender: String?)
    case memberJoined(user: String)
    case memberLeft(user: String)
    case renew(byMs: Int64?)
    case close
    case expire
    case forbid(untilMs: Int64, reason: String)
    case resume
    /// One camera of several: the room goes on with the others, and is forbidden when none is left.
    case forbidSlot(Int, untilMs: Int64, reason: String)
    case resumeSlot(Int)
    /// A valid push to an expired room's stream.
    case reopen
    /// The server starts: no stream lives any more.
    case serverStarted
    /// The clock: apply deadlines that have passed.
    case tick
}

/// What the caller of ``RoomRules/apply(_:to:now:)`` does next, in order.
package enum RoomEffect: Sendable, Equatable {
    /// Store and tell an event with the room's new state; `from` is the state before.
    case event(RoomEvent.Kind, from: RoomState)
    /// End this slot's push, telling its publisher why, and (when `endsViewers`) its viewers' stream.
    case cut(slot: Int, PushEnd, endsViewers: Bool)
    /// The room's time is over: forget it.
    case delete
}

/// Why an input does not fit the room's state.
package enum RoomRefusal: Error, Equatable, Sendable {
    /// `allowed` are the states in which it would have.
    case wrongState(RoomState, allowed: [RoomState])
    /// No slot with this number.
    case noSlot(Int)
}
