import Delivery
import HTTPAPI
import HTTPServer
import HTTPTypes
import Notifications
import RoomRegistry
import Rooms
import ServerConfiguration
import Support

enum CallbackRoutes {
    private static let state = Input("state", .choice() as InputType<OutboxEntry.State>, "Only notices in this state.")
    private static let room = Input("roomId", .id, "Only this room's notices.")
    private static let target = Input(
        "targetId", .sought(length: 1...64), "Only notices to this webhook target; /callbacks/targets lists the ids.")
    private static let before = Input("before", .whole(1...Int64.max), "Only notices with smaller ids.")
    private static let limit = Input("limit", .whole(1...1_000), "The maximum number of notices.", fallback: 100)
    private static let id = Input("callbackId", .whole(1...Int64.max), "The notice's id.").required

    /// Callbacks: the delivery log of webhooks.
    static let all: [ControlRoute] = [
        ControlRoute(
            .get, "/callbacks", "listCallbacks", .callbacks, .ops, .list, "List the delivery log of webhooks, newest first.",
            query: [Self.state, Self.room, Self.target, Self.before, Self.limit],
            answers: CallbackListAnswer.outputType
        ) { call in
            let limit = Int(try call.value(Self.limit))
            let list = try await call.rooms.notices(
                state: call[Self.state], room: call[Self.room], target: try await Self.target(call), scope: call.scope,
                before: call[Self.before], limit: limit)
            return CallbackListAnswer(next: list.count == limit ? list.last?.id : nil, list: list)
        },
        ControlRoute(
            .get, "/callbacks/targets", "listCallbackTargets", .callbacks, .ops, .server,
            "List all webhook targets, and whether each is failing: those in the settings, then those made by calls.",
            answers: CallbackTargetListAnswer.outputType
        ) { call in
            CallbackTargetListAnswer(
                list: try await Self.targets(call).map { CallbackTargetAnswer(target: $0, status: call.services.webhookLog[$0.id]) })
        },
        ControlRoute(
            storing: "/callbacks/{callbackId}/redeliver", "redeliverCallback", .callbacks, .ops, .thing,
            "Send a notice again: queues a copy with an id of its own and the same idempotency key.", in: [Self.id],
            answers: OutboxEntry.outputType
        ) { call, keep in
            let id = try call.value(Self.id)
            guard try await Self.isVisible(id, call) else { throw APIError.notFound("callback", "\(id)", field: "callbackId") }
            return try await keep({ (entry: OutboxEntry?) in
                guard let entry else { throw APIError.notFound("callback", "\(id)", field: "callbackId") }
                return entry
            }) { try await call.rooms.redeliver(id, keeping: $0) }
        },
    ]

    /// Whether the token covers the notice's event. A missing notice is reported later.
    private static func isVisible(_ id: Int64, _ call: APICall) async throws -> Bool {
        guard call.scope.isLimited else { return true }
        return try await call.rooms.notice(id).map { call.scope.holds($0.event) } ?? true
    }

    private static func targets(_ call: APICall) async throws -> [WebhookTarget] {
        call.services.config.webhooks.targets + (try await call.rooms.webhooks()).map(\.target)
    }

    private static func target(_ call: APICall) async throws -> WebhookTarget? {
        guard let id = call[Self.target] else { return nil }
        var targets = call.services.config.webhooks.targets
        if !call.scope.isLimited { targets = try await Self.targets(call) }
        guard let target = targets.first(where: { $0.id == id }) else {
            let known = targets.isEmpty ? "there is none" : "expected one of \(targets.map(\.id).joined(separator: ", "))"
            throw APIError(FieldError("targetId", id, "is not a webhook target; \(known)"))
        }
        return target
    }
}

/// A webhook target and its failures.
struct CallbackTargetAnswer: Sendable {
    let target: WebhookTarget
    /// Nil if no notice was sent to it since the server started.
    let status: WebhookLog.Status?

    private var failing: WebhookLog.Status? { self.status.flatMap { $0.isFailing ? $0 : nil } }

    static let outputType = OutputType<CallbackTargetAnswer>.object(
        "CallbackTarget",
        [
            .field("targetId", .text, "The target's id, as in the log and in callbacks.", \.target.id),
            .field("url", .text, "The target's scheme, host and port.") { String(WebhookLog.shown($0.target.url)) },
            .field("format", .choice(of: WebhookTarget.Format.known), "The format of the bodies.", \.target.format),
            .field("isFailing", .flag, "Whether the last attempt failed.") { $0.failing != nil },
            .field("failingSince", .nullable(.instant), "When the first of the consecutive failures happened.") { $0.failing?.since },
            .field("failedAttempts", .count, "Consecutive failed attempts since then.") { $0.failing?.failed ?? 0 },
            .field("givenUp", .count, "Notices given up since then.") { $0.failing?.givenUp ?? 0 },
            .field("lastError", .nullable(.text), "Why the last attempt failed.") { $0.failing?.problem },
            .field("deliveredAt", .nullable(.instant), "When it last accepted a notice; null: not since the server started.") {
                $0.status?.deliveredAt
            },
        ])
}

struct CallbackTargetListAnswer: Sendable {
    let list: [CallbackTargetAnswer]

    static let outputType = OutputType<CallbackTargetListAnswer>.object(
        "CallbackTargetList", [.field("list", .list(CallbackTargetAnswer.outputType), "The targets.", \.list)])
}

struct CallbackListAnswer: Sendable {
    let next: Int64?
    let list: [OutboxEntry]

    static let outputType = OutputType<CallbackListAnswer>.object(
        "CallbackList",
        [
            .field("next", .nullable(.count), "Pass it as `before` to get the next page; null at the end.", \.next),
            .field("list", .list(OutboxEntry.outputType), "The notices.", \.list),
        ])
}

extension OutboxEntry {
    static let outputType = OutputType<OutboxEntry>.object(
        "Callback",
        [
            .field("callbackId", .count, "The notice's number.", \.id),
            .field("targetId", .text, "The id of the target.", \.target.id),
            .field("url", .text, "The target's scheme, host and port.") { String(WebhookLog.shown($0.target.url)) },
            .field("format", .choice(of: WebhookTarget.Format.known), "The format of the body.", \.target.format),
            .field("state", .choice(), "failed: given up after the last attempt.", \.state),
            .field("event", RoomEvent.outputType, "The event that it reports.", \.event),
            .field("attempts", .count, "Attempts so far.", \.attempts),
            .field("dueAt", .nullable(.instant), "When the next attempt is due; null unless the notice is pending.") {
                $0.state == .pending ? $0.dueAt : nil
            },
            .field("lastStatus", .nullable(.whole(0...999)), "HTTP status of the last attempt; null if there was no answer.", \.lastStatus),
            .field("lastError", .nullable(.text), "Why the last attempt failed.", \.lastError),
            .field("lastAttemptAt", .nullable(.instant), "When the last attempt began.", \.lastAttemptAt),
            .field("lastSeconds", .nullable(.seconds), "How long the last attempt took, in seconds.", \.durationMs),
            .field("deliveredAt", .nullable(.instant), "When the target accepted the notice.", \.deliveredAt),
        ])
}
