package import Rooms
package import Support

extension Gathering {
    /// An input. It names members by their ids, which the dialect has looked up by their connections.
    package enum Input: Sendable, Equatable {
        /// A member connects: a new one, one that comes back, or one with another connection, which is then closed.
        case connect(id: String, name: String, role: String, ConnectionID)
        /// A member joins without a connection: it is away until it connects.
        case enter(id: String, name: String, role: String)
        case disconnect(ConnectionID)
        case leave(id: String)
        case kick(id: String)
        /// A message to one member, or to all others if `to` is nil.
        case say(from: String, to: String?, object: String, content: JSONValue)
        /// A command to one member, or to all others if `to` is nil. Commands are not kept; claw machines are driven by them.
        case command(from: String, to: String?, content: JSONValue)
        /// A dialect's own frame for one member.
        case direct(from: String, to: String, name: String, data: [JSONValue.Member])
        /// Takes a place in the queue, or changes the value at the place that the member has.
        case offer(from: String, value: String)
        /// Gives up a place. A member may give up its own, a host any. A nil `key` stands for the member's own place; for a host, for the first.
        case poll(from: String, key: String?)
        /// Removes a place, by an operator.
        case remove(key: String)
        case pause(Bool)
        /// Opens a ticket. Asking again for the same thing sends the pending ticket again. `newID`: 128 random bits in hex.
        case ask(from: String, to: String, kind: String, payload: JSONValue, newID: String)
        case answer(from: String, ticket: String, isApproved: Bool)
        case tick
        case end(reason: String)
    }

    package enum Effect: Sendable, Equatable {
        /// To these connections, in this order.
        case send(Signal, to: [ConnectionID])
        case close(ConnectionID, Closing)
        /// A new member. Its counterpart `left` is final, unlike being away.
        case joined(Member)
        case left(Member, Departure)
        case queueChanged(QueueChange, Entry)
        case ticketChanged(TicketChange, Ticket)
        /// An event for back ends, besides those above.
        case event(RoomEvent.Kind, [JSONValue.Member])
        /// Mutes or unmutes a member in the room's talk.
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

    /// A message to members. Each dialect writes it in its own form.
    package enum Signal: Sendable, Equatable {
        /// Sent to a member that has just connected: the others in the order in which they joined, the queue and the open tickets.
        case hello(you: Member, others: [Member], queue: [Entry], tickets: [Ticket])
        case arrived(Member)
        case away(Member)
        case back(Member)
        case departed(Member, Departure)
        case said(from: Member, object: String, content: JSONValue, atMs: Int64)
        /// A dialect's notice of a change, or a message to one member. Unlike `said`, it is not kept for members who join later.
        case notified(from: String, object: String, content: JSONValue, atMs: Int64)
        case commanded(from: String, content: JSONValue)
        /// The phase of a machine's game. `deadlineMs`: when the phase ends, in milliseconds since 1970.
        case turn(phase: String, player: String?, uuid: String?, deadlineMs: Int64?)
        case directed(from: Member, name: String, data: [JSONValue.Member])
        case queue(QueueChange, Entry)
        case ticket(TicketChange, Ticket)
        case closed(reason: String)
    }
}
