import Rooms
package import Talk

/// Converts a room's rules for floor and members, and floor events for the registry.
extension TalkSettings {
    package var limits: TalkLimits { TalkLimits(talkers: self.talkers, listeners: self.listeners) }

    package func floor(idleMs: Int64) -> FloorSettings {
        FloorSettings(
            mode: self.mode == .ptt ? .ptt : .open, maxOpen: self.maxOpen, maxHoldMs: self.maxHoldMs, idleMs: idleMs,
            preempts: self.preempts)
    }
}

extension FloorRecord {
    /// Nil for events about waiting. `actor` is the caller whose call caused the event, or during whose call the clock or the queue caused it.
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
    /// Whether time or the queue caused the event, not a caller.
    fileprivate var isOfRulesAlone: Bool { self == .idle || self == .maxHold || self == .turn }
}

/// The reason why a talk channel refuses a participant.
enum TalkDenial: Error, Equatable {
    case refused(TalkRefusal)
    /// The room is over.
    case closed
}
