import HTTPTypes
import Rooms

extension APIRoute {
    private static let state = Input("state", .choice() as Kind<OutboxEntry.State>, "Only notices in this state.")
    private static let room = Input("room", .id, "Only this room's notices.")
    private static let before = Input("before", .whole(1...Int64.max), "Notices with smaller ids only.")
    private static let limit = Input("limit", .whole(1...1_000), "How many at most.", fallback: 100)
    private static let id = Input("callbackId", .whole(1...Int64.max), "The notice's id.").required

    /// Callbacks: the log of what is sent to webhooks.
    static let callbacks: [APIRoute] = [
        APIRoute(
            .get, "/callbacks", "listCallbacks", .callbacks, .ops, "The delivery log, newest first.",
            query: [Self.state.erased, Self.room.erased, Self.before.erased, Self.limit.erased], answers: CallbackListAnswer.shape
        ) { call in
            let limit = Int(try call.value(Self.limit))
            let list = try await call.rooms.notices(
                state: call[Self.state], room: call[Self.room], before: call[Self.before], limit: limit)
            return CallbackListAnswer(next: list.count == limit ? list.last?.id : nil, list: list)
        },
        APIRoute(
            storing: "/callbacks/{callbackId}/redeliver", "redeliverCallback", .callbacks, .ops, "Send a notice again, with the same key.",
            in: [Self.id.erased], answers: OutboxEntry.shape
        ) { call, keep in
            let id = try call.value(Self.id)
            return try await keep({ (entry: OutboxEntry?) in
                guard let entry else { throw APIError.notFound("callback", "\(id)") }
                return entry
            }) { try await call.rooms.redeliver(id, keeping: $0) }
        },
    ]
}

struct CallbackListAnswer: Sendable {
    let next: Int64?
    let list: [OutboxEntry]

    static let shape = Shape<CallbackListAnswer>.object(
        "CallbackList",
        [
            .field("next", .nullable(.count), "For `before`; null at the end.", \.next),
            .field("list", .list(OutboxEntry.shape), "The notices.", \.list),
        ])
}

extension OutboxEntry {
    static let shape = Shape<OutboxEntry>.object(
        "Callback",
        [
            .field("id", .count, "The notice's number; its idempotency key names it too.", \.id),
            .field("url", .text, "Where it goes: scheme, host and port.") { String(WebhookLog.shown($0.target.url)) },
            .field("format", .choice(), "The shape of its body.", \.target.format),
            .field("state", .choice(), "Failed: given up after the last try.", \.state),
            .field("event", RoomEvent.shape, "What it tells.", \.event),
            .field("attempts", .count, "Tries so far.", \.attempts),
            .field("dueAt", .nullable(.instant), "When the next try is due, while it is pending.") {
                $0.state == .pending ? $0.dueAt : nil
            },
            .field("lastStatus", .nullable(.whole(0...999)), "HTTP status of the last try; null without an answer.", \.lastStatus),
            .field("lastError", .nullable(.text), "Why the last try failed.", \.lastError),
            .field("lastAttemptAt", .nullable(.instant), "When the last try began.", \.lastAttemptAt),
            .field("lastSeconds", .nullable(.seconds), "How long the last try took.", \.durationMs),
            .field("deliveredAt", .nullable(.instant), "When it was accepted.", \.deliveredAt),
        ])
}
