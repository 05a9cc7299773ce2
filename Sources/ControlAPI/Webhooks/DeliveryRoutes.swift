import HTTPAPI
import HTTPServer
import HTTPTypes
import Notifications
import RoomRegistry
import Rooms
import ServerConfiguration
import Streaming
import Support

enum DeliveryRoutes {
    private static let state = Input("state", .choice() as InputType<WebhookDelivery.State>, "Only deliveries in this state.")
    private static let room = Input("roomId", .id, "Only this room's deliveries.")
    static let target = Input(
        "targetId", .sought(length: 1...64), "Only deliveries to this webhook; /webhooks/targets lists the ids.")
    private static let before = Input("before", .whole(1...Int64.max), "Only deliveries with smaller ids.")
    private static let limit = Input("limit", .whole(1...1_000), "The maximum number of deliveries.", fallback: 100)
    private static let id = Input("deliveryId", .whole(1...Int64.max), "The delivery's id.").required

    /// The log of deliveries, and the targets of all webhooks.
    static let all: [ControlRoute] = [
        ControlRoute(
            .get, "/webhooks/deliveries", "listDeliveries", .webhooks, .ops, .list, "List the deliveries of webhooks, newest first.",
            query: [Self.state, Self.room, Self.target, Self.before, Self.limit],
            answers: DeliveryListAnswer.outputType
        ) { call in
            let limit = Int(try call.value(Self.limit))
            let list = try await call.rooms.deliveries(
                state: call[Self.state], room: call[Self.room], target: try await Self.target(call), scope: call.scope,
                before: call[Self.before], limit: limit)
            return DeliveryListAnswer(next: list.count == limit ? list.last?.id : nil, list: list)
        },
        ControlRoute(
            .get, "/webhooks/targets", "listWebhookTargets", .webhooks, .ops, .server,
            "List all webhooks, and whether each is failing: those in the settings, then those made by calls.",
            answers: WebhookTargetListAnswer.outputType
        ) { call in
            var list: [WebhookTargetAnswer] = []
            for target in try await Self.targets(call) {
                let pending = try await call.rooms.pendingDeliveries(of: target)
                list.append(WebhookTargetAnswer(target: target, pending: pending, status: call.services.webhookLog[target.id]))
            }
            return WebhookTargetListAnswer(list: list)
        },
        ControlRoute(
            storing: "/webhooks/deliveries/{deliveryId}/redeliver", "redeliverDelivery", .webhooks, .ops, .thing,
            "Send an event again: queues a copy with an id of its own and the same idempotency key. One that still waits is due now instead.",
            in: [Self.id],
            answers: WebhookDelivery.outputType
        ) { call, keep in
            let id = try call.value(Self.id)
            guard try await Self.isVisible(id, call) else { throw APIError.notFound("delivery", "\(id)", field: "deliveryId") }
            return try await keep({ (entry: WebhookDelivery?) in
                guard let entry else { throw APIError.notFound("delivery", "\(id)", field: "deliveryId") }
                return entry
            }) { try await call.rooms.redeliver(id, keeping: $0) }
        },
    ]

    /// Whether the token covers the delivery's event. A missing delivery is reported later.
    private static func isVisible(_ id: Int64, _ call: APICall) async throws -> Bool {
        guard call.scope.isLimited else { return true }
        return try await call.rooms.delivery(id).map { call.scope.holds($0.event) } ?? true
    }

    /// Those of the settings, then those made by calls.
    static func targets(_ call: APICall) async throws -> [WebhookTarget] {
        call.services.config.webhooks.targets + (try await call.rooms.webhooks()).map(\.target)
    }

    /// The webhook that the call names; nil if it names none.
    static func target(_ call: APICall) async throws -> WebhookTarget? {
        guard let id = call[Self.target] else { return nil }
        var targets = call.services.config.webhooks.targets
        if !call.scope.isLimited { targets = try await Self.targets(call) }
        guard let target = targets.first(where: { $0.id == id }) else {
            let known = targets.isEmpty ? "there is none" : "expected one of \(targets.map(\.id).joined(separator: ", "))"
            throw APIError(FieldError("targetId", id, "is no webhook's; \(known)"))
        }
        return target
    }
}

/// A webhook and its failures.
struct WebhookTargetAnswer: Sendable {
    let target: WebhookTarget
    let pending: Int
    /// Nil if nothing was sent to it since the server started.
    let status: WebhookLog.Status?

    private var failing: WebhookLog.Status? { self.status.flatMap { $0.isFailing ? $0 : nil } }

    static let outputType = OutputType<WebhookTargetAnswer>.object(
        "WebhookTarget",
        [
            .field("targetId", .text, "The target's id, as in deliveries.", \.target.id),
            .field("url", .text, "The target's scheme, host and port.") { String(WebhookLog.shown($0.target.url)) },
            .field("format", .choice(of: WebhookTarget.Format.known), "The format of the bodies.", \.target.format),
            .field("pending", .count, "Deliveries that wait to be sent.", \.pending),
            .field("isFailing", .flag, "Whether the last attempt failed.") { $0.failing != nil },
            .field("failingSince", .nullable(.instant), "When the first of the consecutive failures happened.") { $0.failing?.since },
            .field("failedAttempts", .count, "Consecutive failed attempts since then.") { $0.failing?.failed ?? 0 },
            .field("givenUp", .count, "Deliveries given up since then.") { $0.failing?.givenUp ?? 0 },
            .field("lastError", .nullable(.text), "Why the last attempt failed.") { $0.failing?.problem },
            .field("deliveredAt", .nullable(.instant), "When it last accepted an event; null: not since the server started.") {
                $0.status?.deliveredAt
            },
        ])
}

struct WebhookTargetListAnswer: Sendable {
    let list: [WebhookTargetAnswer]

    static let outputType = OutputType<WebhookTargetListAnswer>.object(
        "WebhookTargetList", [.field("list", .list(WebhookTargetAnswer.outputType), "The targets.", \.list)])
}

struct DeliveryListAnswer: Sendable {
    let next: Int64?
    let list: [WebhookDelivery]

    static let outputType = OutputType<DeliveryListAnswer>.object(
        "DeliveryList",
        [
            .field("next", .nullable(.count), "Pass it as `before` to get the next page; null at the end.", \.next),
            .field("list", .list(WebhookDelivery.outputType), "The deliveries.", \.list),
        ])
}

extension WebhookDelivery {
    static let outputType = OutputType<WebhookDelivery>.object(
        "Delivery",
        [
            .field("deliveryId", .count, "The delivery's number.", \.id),
            .field("targetId", .text, "The id of the target.", \.target.id),
            .field("url", .text, "The target's scheme, host and port.") { String(WebhookLog.shown($0.target.url)) },
            .field("format", .choice(of: WebhookTarget.Format.known), "The format of the body.", \.target.format),
            .field("state", .choice(), "failed: given up after the last attempt.", \.state),
            .field("event", RoomEvent.outputType, "The event that it reports.", \.event),
            .field("attempts", .count, "Attempts so far.", \.attempts),
            .field("dueAt", .nullable(.instant), "When the next attempt is due; null unless the delivery is pending.") {
                $0.state == .pending ? $0.dueAt : nil
            },
            .field("lastStatus", .nullable(.whole(0...999)), "HTTP status of the last attempt; null if there was no answer.", \.lastStatus),
            .field("lastError", .nullable(.text), "Why the last attempt failed.", \.lastError),
            .field("lastAttemptAt", .nullable(.instant), "When the last attempt began.", \.lastAttemptAt),
            .field("lastSeconds", .nullable(.seconds), "How long the last attempt took, in seconds.", \.durationMs),
            .field("deliveredAt", .nullable(.instant), "When the target accepted the event.", \.deliveredAt),
        ])
}
