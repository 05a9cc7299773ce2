package import Access
package import Rooms
package import Support

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

    package var ticketContent: [JSONValue.Member] {
        var content: [JSONValue.Member] = []
        content.add("tokenId", self.tokenID)
        content.add("role", self.role.rawValue)
        content.add("room", self.room)
        content.add("apps", self.scope.apps)
        content.add("rooms", self.scope.rooms)
        return content
    }

    package init?(ticketContent: JSONValue) {
        guard let tokenID = ticketContent.integer("tokenId"), let role = ticketContent.string("role").flatMap(TokenRole.init(rawValue:)),
            let apps = ticketContent.strings("apps"), let rooms = ticketContent.strings("rooms")
        else { return nil }
        self.init(tokenID: tokenID, role: role, room: ticketContent.string("room"), scope: TokenScope(apps: apps, rooms: rooms))
    }
}
