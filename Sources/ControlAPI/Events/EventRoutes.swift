import Access
import HTTPAPI
import HTTPServer
import HTTPTypes
import Notifications
import RoomRegistry
import Rooms
import Streaming
import Support

enum EventRoutes {
    private static let after = Input("after", .whole(0...Int64.max), "Only events with larger ids.", fallback: 0)
    private static let before = Input(
        "before", .whole(1...Int64.max), "Only events with smaller ids, newest first: the room's history. Not together with `after`.")
    private static let limit = Input("limit", .whole(1...1_000), "The maximum number of events.", fallback: 100)
    private static let room = Input("roomId", .id, "Only this room's events.")
    private static let kinds = Input("kinds", .choices() as InputType<Set<RoomEvent.Kind>>, "Only events of these kinds.")

    private static let ticketRoom = Input("roomId", .id, "The room whose events the ticket covers; all rooms if omitted.")

    /// Events, oldest first.
    static let all: [ControlRoute] = [
        ControlRoute(
            .get, "/events", "listEvents", .events, .backend, .list,
            "List the events of all rooms, oldest first. The WebSocket /events sends them as they happen.",
            query: [Self.after, Self.room, Self.kinds, Self.limit], answers: EventListAnswer.outputType
        ) { call in
            try await Self.list(call, room: call[Self.room])
        },
        ControlRoute(
            .get, "/rooms/{roomId}/events", "listRoomEvents", .events, .backend, .room,
            "List a room's events, oldest first, or with `before` newest first.",
            in: [RoomInputs.room], query: [Self.after, Self.before, Self.kinds, Self.limit],
            answers: EventListAnswer.outputType
        ) { call in
            let id = try call.value(RoomInputs.room)
            let answer =
                if let before = call[Self.before] {
                    try await Self.history(call, of: id, before: before)
                } else {
                    try await Self.list(call, room: id)
                }
            // A deleted room is still known by its events for a while.
            if answer.list.isEmpty { _ = try await call.rooms.room(id) }
            return answer
        },
        ControlRoute(
            .post, "/events/ticket", "makeEventTicket", .events, .backend, .creation,
            "Make a ticket that opens the WebSocket /events once, within a minute, for clients that cannot send a token.",
            body: [Self.ticketRoom], answers: OneTimeTicket.outputType, failures: [.notFound], effect: .nothing, isAudited: false
        ) { call in
            guard let token = call.token else { throw APIError(.unauthorized, .unauthorized, "A ticket needs a token.") }
            // Fails now, so that the failure does not come only when the ticket is used.
            if let id = call[Self.ticketRoom] {
                let room = try await call.rooms.room(id)
                guard call.scope.holds(room) else { throw RegistryError.noSuchRoom(id) }
            }
            let holder = EventHolder(tokenID: token.id, role: token.role, room: call[Self.ticketRoom], scope: token.scope)
            guard let ticket = call.services.tickets.issue(to: holder) else {
                throw APIError(RegistryError.tooMany(what: "unused tickets", limit: EventTickets.limitPerOwner))
            }
            return ticket
        },
    ]

    private static func history(_ call: APICall, of room: String, before: Int64) async throws -> EventListAnswer {
        guard try call.value(Self.after) == 0 else {
            throw APIError(FieldError("before", "", "expected without after: one lists the newest first, the other the oldest"))
        }
        let limit = Int(try call.value(Self.limit))
        let list = try await call.rooms.events(before: before, room: room, kinds: call[Self.kinds] ?? [], scope: call.scope, limit: limit)
        return EventListAnswer(last: list.last?.id ?? before, isComplete: list.count < limit, list: list)
    }

    private static func list(_ call: APICall, room: String?) async throws -> EventListAnswer {
        let limit = Int(try call.value(Self.limit))
        let after = try call.value(Self.after)
        let list = try await call.rooms.events(after: after, room: room, kinds: call[Self.kinds] ?? [], scope: call.scope, limit: limit)
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
            .field("last", .count, "Pass it as `after`, or as `before`, in the next call.", \.last),
            .field("isComplete", .flag, "Whether there is no later event yet; with `before`, no earlier one.", \.isComplete),
            .field("list", .list(RoomEvent.outputType), "The events.", \.list),
        ])
}

extension RoomEvent {
    /// One variant per kind. All kinds are written alike: the variants differ in what they allow.
    static let outputType = OutputType<RoomEvent>(
        .named("Event", .variants(by: "kind", Kind.allCases.map { $0.variant("Event", Self.fields(of: $0).map(\.property)) })),
        OutputType<RoomEvent>.object(nil, Self.fields(of: .roomCreated)).write)

    static func fields(of kind: Kind) -> [Field<RoomEvent>] {
        let form = kind.form
        return [
            .field("id", .count, "Increases across all rooms and is never reused.", \.id),
            .field("number", .count, "Increases by one with each event of the room; 0 without a room.", \.number),
            .field("kind", .words([kind.rawValue]), form.help, \.kind.rawValue),
            .field("roomId", form.scope.roomID, form.scope.help) { $0.roomID?.rawValue },
            .field("instance", .count, "The number of the room's instance; 0 without a room.", \.instance),
            .field("at", .instant, "When it happened.", \.at),
            .field("data", OutputType(form.data, OutputType<String>.jsonObject.write), "Details.", \.data),
        ]
    }
}

extension RoomEvent.Kind {
    /// This kind's variant in the schema with this name.
    func variant(_ name: String, _ properties: [Schema.Property]) -> Schema.Variant {
        Schema.Variant(value: self.rawValue, name: self.schemaName + name, properties: properties)
    }
}

extension EventForm.Scope {
    fileprivate var roomID: OutputType<String?> {
        let all = OutputType<String?>.nullable(.text)
        return switch self {
        case .room: OutputType(OutputType<String>.text.schema, all.write)
        case .stream: all
        case .server: OutputType(OutputType<Void>.nothing.schema, all.write)
        }
    }

    fileprivate var help: String {
        switch self {
        case .room: "The room."
        case .stream: "The room; null for streams without one."
        case .server: "Null: it belongs to no room."
        }
    }
}

extension OneTimeTicket {
    static let outputType = OutputType<OneTimeTicket>.object(
        "EventTicket",
        [
            .field("ticket", .text, "For /events?ticket=…. Valid for one connection.", \.text),
            .field("expiresAt", .instant, "When the ticket expires.", \.expiresAt),
        ])
}
