package import Rooms
import Support

extension GatheringChange {
    /// The store's part of a gathering's effects: members who join and leave the room, and events.
    package init(_ gathering: StoredGathering, _ effects: [Gathering.Effect]) {
        self.init(gathering)
        for effect in effects {
            switch effect {
            case .joined(let member): self.joins.append((member.id, member.name))
            case .left(let member, let why): self.leaves.append((member.id, why == .kicked))
            case .queueChanged(let action, let entry):
                self.events.append(
                    Event(
                        .queueChanged,
                        [
                            .init(name: "action", value: .string(action.rawValue)), .init(name: "key", value: .string(entry.key)),
                            .init(name: "value", value: .string(entry.value)),
                        ]))
            case .ticketChanged(let action, let ticket):
                self.events.append(
                    Event(
                        action.event,
                        [
                            .init(name: "ticketId", value: .string(ticket.id)), .init(name: "kind", value: .string(ticket.kind)),
                            .init(name: "from", value: .string(ticket.from)), .init(name: "to", value: .string(ticket.to)),
                        ]))
            case .event(let kind, let data):
                self.events.append(Event(kind, data))
                if kind == .boardDeleted, case .string(let url)? = data.first(where: { $0.name == "boardId" })?.value,
                    let key = Classroom.Board.key(of: url)
                {
                    self.deletedBoards.append(key)
                }
            case .ended: self.hasEnded = true
            case .send, .close, .mute: break
            }
        }
    }
}

extension Gathering.TicketChange {
    fileprivate var event: RoomEvent.Kind {
        switch self {
        case .opened: .ticketOpened
        case .approved: .ticketApproved
        case .rejected: .ticketRejected
        case .expired: .ticketExpired
        }
    }
}
