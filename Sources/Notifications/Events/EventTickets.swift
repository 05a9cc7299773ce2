package import Access
package import Rooms

/// One-time tickets for the event feed.
package typealias EventTickets = OneTimeTickets<EventHolder>

/// The rights that a ticket for the event feed, or a token itself, grants. A value.
package struct EventHolder: TicketHolder, Equatable {
    package let tokenID: Int64
    package let role: TokenRole
    /// The only room whose events it covers; nil: all.
    package let room: String?
    /// The part of the server that the token covers.
    package let scope: TokenScope

    package init(tokenID: Int64, role: TokenRole, room: String?, scope: TokenScope = .all) {
        self.tokenID = tokenID
        self.role = role
        self.room = room
        self.scope = scope
    }

    package static var ticketKind: String { "events" }
    package var ticketOwner: Int64 { self.tokenID }
}
