package import Rooms
package import Support

extension Gathering {
    /// An input. Members name themselves by their ids; a dialect has found these by their connections.
    package enum Input: Sendable, Equatable {
        /// A member connects: a new one, one that comes back, or one that has another connection, which is closed then.
        case connect(id: String, name: String, role: String, ConnectionID)
        /// A member that has no connection yet: it is away until it connects.
        case enter(id: String, name: String, role: String)
        case disconnect(ConnectionID)
        case leave(id: String)
        case kick(id: String)
        /// Text for all others, or for one.
        case say(from: String, to: String?, object: String, content: JSONValue)
        /// For one member, or for all others; a machine's command, of which nothing is kept.
        case command(from: String, to: String?, content: JSONValue)
        /// A dialect's own frame for one member.
        case direct(from: String, to: String, name: String, data: [JSONValue.Member])
        /// Takes a place in the queue, or changes the value at the place that the member has.
        case offer(from: String, value: String)
        /// Gives a place up: one's own, or, for a host, anybody's; without a key the first one.
        case poll(from: String, key: String?)
        /// Of an operator.
        case remove(key: String)
        case pause(Bool)
        /// Asks again for the same thing sends the pending ticket again. `newID`: 128 random bits in hex.
        case ask(from: String, to: String, kind: String, payload: JSONValue, newID: String)
        case answer(from: String, ticket: String, isApproved: Bool)
        case tick
        case end(reason: String)
    }

    package enum Effect: Sendable, Equatable {
        /// To these connections, in this order.
        case send(Signal, to: [ConnectionID])
        case close(ConnectionID, Closing)
        /// A member that is new, or gone for good.
        case joined(Member)
        case left(Member, Departure)
        case queueChanged(QueueChange, Entry)
        case ticketChanged(TicketChange, Ticket)
        /// Something that back ends are told, besides the above.
        case event(RoomEvent.Kind, [JSONValue.Member])
        /// A member's voice in the room's talk.
        case mute(String, Bool)
        case ended(reason: String)
    }

    /// Why the server closes a connection.
    package enum Closing: Sendable, Equatable {
        /// The same member has connected again.
        case replaced
        case kicked
        case ended(reason: String)
    }

    package enum Departure: String, Sendable { case left, kicked, offline, ended }

    package enum QueueChange: String, Sendable { case offer = "OFFER", poll = "POLL", drop = "DROP" }

    package enum TicketChange: String, Sendable { case opened, approved, rejected, expired }

    /// Something that members are told. A dialect has its own words for it.
    package enum Signal: Sendable, Equatable {
        /// To who has just connected: the others, in the order in which they joined, and what is going on.
        case hello(you: Member, others: [Member], queue: [Entry], tickets: [Ticket])
        case arrived(Member)
        case away(Member)
        case back(Member)
        case departed(Member, Departure)
        case said(from: Member, object: String, content: JSONValue, atMs: Int64)
        /// A dialect's word of what has changed, or what is said to one alone. Of `said` the last ones are kept for who comes later, of these none.
        case notified(from: String, object: String, content: JSONValue, atMs: Int64)
        case commanded(from: String, content: JSONValue)
        /// Where the game of a machine is. `deadlineMs`: when the phase ends, in milliseconds since 1970.
        case turn(phase: String, player: String?, uuid: String?, deadlineMs: Int64?)
        case directed(from: Member, name: String, data: [JSONValue.Member])
        case queue(QueueChange, Entry)
        case ticket(TicketChange, Ticket)
        case closed(reason: String)
    }
}
