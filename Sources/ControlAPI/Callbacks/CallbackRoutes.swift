import Delivery
import HTTPServer
import HTTPTypes
import Notifications
import Rooms
import ServerConfiguration
import Support

extension APIRoute {
    private static let state = Input("state", .choice() as InputType<OutboxEntry.State>, "Only notices in this state.")
    private static let room = Input("roomId", .id, "Only this room's notices.", formerly: "room")
    private static let target = Input(
        "targetId", .sought(length: 1...64), "Only notices to this target of the settings, as /callbacks/targets names it.")
    private static let before = Input("before", .whole(1...Int64.max), "Notices with smaller ids only.")
    private static let limit = Input("limit", .whole(1...1_000), "How many at most.", fallback: 100)
    private static let id = Input("callbackId", .whole(1...Int64.max), "The notice's id.").required

    /// Callbacks: the delivery log of webhooks.
    static let callbacks: [APIRoute] = [
        APIRoute(
            .get, "/callbacks", "listCallbacks", .callbacks, .ops, "The delivery log, newest first.",
            query: [Self.state.erased, Self.room.erased, Self.target.erased, Self.before.erased, Self.limit.erased],
            answers: CallbackListAnswer.outputType
        ) { call in
            let limit = Int(try call.value(Self.limit))
            let list = try await call.rooms.notices(
                state: call[Self.state], room: call[Self.room], target: try Self.target(call), before: call[Self.before], limit: limit)
            return CallbackListAnswer(next: list.count == limit ? list.last?.id : nil, list: list)
        },
        APIRoute(
            .get, "/callbacks/targets", "listCallbackTargets", .callbacks, .ops, "The targets that the settings name, and how each does.",
            answers: CallbackTargetListAnswer.outputType
        ) { call in
            CallbackTargetListAnswer(
                list: call.core.config.webhooks.targets.map {
                    CallbackTargetAnswer(target: $0, standing: call.core.webhookLog[$0.id])
                })
        },
        APIRoute(
            storing: "/callbacks/{callbackId}/redeliver", "redeliverCallback", .callbacks, .ops, "Send a notice again, with the same key.",
            in: [Self.id.erased], answers: OutboxEntry.outputType
        ) { call, keep in
            let id = try call.value(Self.id)
            return try await keep({ (entry: OutboxEntry?) in
                guard let entry else { throw APIError.notFound("callback", "\(id)", field: "callbackId") }
                return entry
            }) { try await call.rooms.redeliver(id, keeping: $0) }
        },
    ]

    private static func target(_ call: APICall) throws(APIError) -> WebhookTarget? {
        guard let id = call[Self.target] else { return nil }
        let targets = call.core.config.webhooks.targets
        guard let target = targets.first(where: { $0.id == id }) else {
            let known = targets.isEmpty ? "the settings name none" : "known are \(targets.map(\.id).joined(separator: ", "))"
            throw APIError(FieldError("targetId", id, "is no target; \(known)"))
        }
        return target
    }
}

/// A webhook target and its failures.
struct CallbackTargetAnswer: Sendable {
    let target: WebhookTarget
    /// Nil if it has not failed since the server started.
    let standing: WebhookLog.Standing?

    private var failing: WebhookLog.Standing? { self.standing.flatMap { $0.isFailing ? $0 : nil } }

    static let outputType = OutputType<CallbackTargetAnswer>.object(
        "CallbackTarget",
        [
            .field("targetId", .text, "Its id: log and callbacks name it so.", \.target.id),
            .field("url", .text, "Scheme, host and port.") { String(WebhookLog.shown($0.target.url)) },
            .field("format", .choice(), "The shape of the bodies.", \.target.format),
            .field("isFailing", .flag, "Its last attempt failed.") { $0.failing != nil },
            .field("failingSince", .nullable(.instant), "The first of the attempts that failed.") { $0.failing?.since },
            .field("failedAttempts", .count, "Failed since then, one after the other.") { $0.failing?.failed ?? 0 },
            .field("givenUp", .count, "Notices given up since then.") { $0.failing?.givenUp ?? 0 },
            .field("lastError", .nullable(.text), "Why the last one failed.") { $0.failing?.problem },
        ])
}

struct CallbackTargetListAnswer: Sendable {
    let list: [CallbackTargetAnswer]

    static let outputType = OutputType<CallbackTargetListAnswer>.object(
        "CallbackTargetList", [.field("list", .list(CallbackTargetAnswer.outputType), "As the settings have them.", \.list)])
}

struct CallbackListAnswer: Sendable {
    let next: Int64?
    let list: [OutboxEntry]

    static let outputType = OutputType<CallbackListAnswer>.object(
        "CallbackList",
        [
            .field("next", .nullable(.count), "For `before`; null at the end.", \.next),
            .field("list", .list(OutboxEntry.outputType), "The notices.", \.list),
        ])
}

extension OutboxEntry {
    static let outputType = OutputType<OutboxEntry>.object(
        "Callback",
        [
            .field("callbackId", .count, "The notice's number; its idempotency key names it too.", \.id),
            .former("id", of: "callbackId", .count, \.id),
            .field("targetId", .text, "Where it goes: the target's id.", \.target.id),
            .field("url", .text, "The target's scheme, host and port.") { String(WebhookLog.shown($0.target.url)) },
            .field("format", .choice(), "The shape of its body.", \.target.format),
            .field("state", .choice(), "Failed: given up after the last try.", \.state),
            .field("event", RoomEvent.outputType, "What it tells.", \.event),
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
