import Rooms
import Talk

/// A room's rules as the floor and the members' list take them, and what they tell as the registry takes it.
extension TalkSettings {
    var limits: TalkLimits { TalkLimits(talkers: self.talkers, listeners: self.listeners) }

    func floor(idleMs: Int64) -> FloorSettings {
        FloorSettings(
            mode: self.mode == .ptt ? .ptt : .open, maxOpen: self.maxOpen, maxHoldMs: self.maxHoldMs, idleMs: idleMs,
            preempts: self.preempts)
    }
}

extension FloorRecord {
    /// Nil for what only waits. `actor`: whose call it was that did this, or in whose course the clock or the queue did it.
    init?(_ event: FloorEvent, mode: String, actor: Actor?) {
        let kind: Kind
        switch event.kind {
        case .granted: kind = .granted
        case .denied: kind = .denied
        case .released: kind = .released
        case .revoked: kind = .revoked
        default: return nil
        }
        let caller = event.reason.isOfRulesAlone ? nil : actor?.name
        self.init(
            kind: kind, user: event.participant.rawValue, reason: "\(event.reason.rawValue)", mode: mode, heldMs: event.heldMs,
            by: event.by?.rawValue ?? caller, caller: caller)
    }
}

extension FloorReason {
    /// Nobody's doing: time, or the queue.
    fileprivate var isOfRulesAlone: Bool { self == .idle || self == .maxHold || self == .turn }
}

/// Why somebody does not get into a talk channel.
enum TalkDenial: Error, Equatable {
    case refused(TalkRefusal)
    /// The room is over.
    case closed
}
