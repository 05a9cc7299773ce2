import Delivery
import HTTPServer
import HTTPTypes
import Notifications
import RoomStore
import Rooms

extension APIRoute {
    private static let after = Input("after", .whole(0...Int64.max), "Only events with larger ids.", fallback: 0)
    private static let limit = Input("limit", .whole(1...1_000), "The maximum number of events.", fallback: 100)
    private static let room = Input("roomId", .id, "Only this room's events.", formerly: "room")

    private static let ticketRoom = Input("roomId", .id, "The room whose events the ticket covers; all rooms if omitted.")

    /// Events, oldest first.
    package static let events: [APIRoute] = [
        APIRoute(
            .get, "/events", "listEvents", .events, .app,
            "List the events of all rooms, oldest first. The WebSocket /events sends them as they happen.",
            query: [Self.after.erased, Self.room.erased, Self.limit.erased], answers: EventListAnswer.outputType
        ) { call in
            try await Self.list(call, room: call[Self.room])
        },
        APIRoute(
            .get, "/rooms/{roomId}/events", "listRoomEvents", .events, .app, "List a room's events, oldest first.",
            in: [RoomInputs.room.erased], query: [Self.after.erased, Self.limit.erased], answers: EventListAnswer.outputType
        ) { call in
            let id = try call.value(RoomInputs.room)
            let answer = try await Self.list(call, room: id)
            // A deleted room is still known by its events for a while.
            if answer.list.isEmpty { _ = try await call.rooms.room(id) }
            return answer
        },
        APIRoute(
            .post, "/events/ticket", "makeEventTicket", .events, .app,
            "Make a ticket that opens the WebSocket /events once, within a minute, for clients that cannot send a token.",
            body: [Self.ticketRoom.erased], answers: EventTickets.Ticket.outputType, failures: [.notFound], effect: .nothing
        ) { call in
            guard let token = call.token else { throw APIError(.unauthorized, .unauthorized, "A ticket needs a token.") }
            // Fails now rather than when the ticket is used.
            if let room = call[Self.ticketRoom] { _ = try await call.rooms.room(room) }
            let holder = EventTickets.Holder(tokenID: token.id, role: token.role, room: call[Self.ticketRoom])
            guard let ticket = call.services.tickets.issue(to: holder) else {
                throw APIError(RegistryError.tooMany(what: "unused tickets", limit: EventTickets.limitPerToken))
            }
            return ticket
        },
    ]

    private static func list(_ call: APICall, room: String?) async throws -> EventListAnswer {
        let limit = Int(try call.value(Self.limit))
        let after = try call.value(Self.after)
        let list = try await call.rooms.events(after: after, room: room, limit: limit)
        return EventListAnswer(last: list.last?.id ?? after, isComplete: list.count < limit, list: list)
    }
}

struct EventListAnswer: Sendable {
    let last: Int64
    let isComplete: Bool
    let list: [RoomEvent]

    static let outputType = OutputType<EventListAnswer>.object(
        "EventList",
        [
            .field("last", .count, "Pass it as `after` in the next call.", \.last),
            .field("isComplete", .flag, "Whether there is no later event yet.", \.isComplete),
            .field("list", .list(RoomEvent.outputType), "The events.", \.list),
        ])
}

extension RoomEvent {
    static let outputType = OutputType<RoomEvent>.object(
        "Event",
        [
            .field("id", .count, "Increases across all rooms and is never reused.", \.id),
            .field("number", .count, "Increases by one with each event of the room.", \.number),
            .field("kind", .choice(), "The kind of event.", \.kind),
            .field("roomId", .nullable(.text), "The room; null for streams without one.") { $0.roomID?.rawValue },
            .field("instance", .count, "The number of the room's instance.", \.instance),
            .field("at", .instant, "When it happened.", \.at),
            .field("data", .jsonObject, "Details, which depend on `kind`.", \.data),
        ])
}

extension EventTickets.Ticket {
    static let outputType = OutputType<EventTickets.Ticket>.object(
        "EventTicket",
        [
            .field("ticket", .text, "For /events?ticket=…. Valid for one connection.", \.text),
            .field("expiresAt", .instant, "When the ticket expires.", \.expiresAt),
        ])
}
