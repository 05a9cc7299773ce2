import HTTPAPI
import Notifications
import RoomRegistry
import Rooms

/// A webhook made by a call, without its secret.
struct WebhookAnswer: Sendable {
    let hook: StoredWebhook
    let pending: Int
    /// Nil if nothing was sent to it since the server started.
    let status: WebhookLog.Status?

    init(_ hook: StoredWebhook, pending: Int, status: WebhookLog.Status?) {
        self.hook = hook
        self.pending = pending
        self.status = status
    }

    init(_ hook: StoredWebhook, _ call: APICall) async throws {
        self.init(
            hook, pending: try await call.rooms.pendingDeliveries(of: hook.target), status: call.services.webhookLog[hook.target.id])
    }

    private var failing: WebhookLog.Status? { self.status.flatMap { $0.isFailing ? $0 : nil } }

    static let fields: [Field<WebhookAnswer>] = [
        .field("webhookId", .count, "The target's number.", \.hook.id),
        .field("targetId", .text, "The target's id in deliveries.", \.hook.target.id),
        .field("name", .text, "The target's name.", \.hook.name),
        .field("url", .text, "The target's scheme, host and port.", \.hook.target.origin),
        .field("format", .choice(of: WebhookTarget.Format.known), "The format of the bodies.", \.hook.format),
        .field("kinds", .list(.text), "The kinds of events that it gets; empty: all.") { $0.hook.kinds.map(\.rawValue) },
        .field("rooms", .list(.text), "Beginnings of the names of rooms and streams whose events it gets; empty: all.", \.hook.rooms),
        .field("isPaused", .flag, "Whether its deliveries wait.", \.hook.isPaused),
        .field("createdAt", .instant, "When the target was created.", \.hook.createdAt),
        .field("pending", .count, "Deliveries that wait to be sent.", \.pending),
        .field("isFailing", .flag, "Whether the last attempt failed.") { $0.failing != nil },
        .field("failingSince", .nullable(.instant), "When the first of the consecutive failures happened.") { $0.failing?.since },
        .field("lastError", .nullable(.text), "Why the last attempt failed.") { $0.failing?.problem },
        .field("deliveredAt", .nullable(.instant), "When it last accepted an event; null: not since the server started.") {
            $0.status?.deliveredAt
        },
    ]
    static let outputType = OutputType<WebhookAnswer>.object("Webhook", Self.fields)
}

struct WebhookListAnswer: Sendable {
    let list: [WebhookAnswer]

    static let outputType = OutputType<WebhookListAnswer>.object(
        "WebhookList",
        [
            .field("total", .count, "The number of targets.", \.list.count),
            .field("list", .list(WebhookAnswer.outputType), "The targets.", \.list),
        ])
}

struct NewWebhookAnswer: Sendable {
    let webhook: WebhookAnswer
    let secret: String

    static let outputType = OutputType<NewWebhookAnswer>.object(
        "NewWebhook",
        WebhookAnswer.fields.map { field in field.within { $0.webhook } } + [
            .field("secret", .nullable(.text), "The key of its signatures; null in an answer repeated for its Idempotency-Key.") {
                $0.secret
            }
        ])
}

struct DroppedDeliveriesAnswer: Sendable {
    let dropped: Int

    static let outputType = OutputType<DroppedDeliveriesAnswer>.object(
        "DroppedDeliveries", [.field("dropped", .count, "Deliveries that waited for the target and were dropped.", \.dropped)])
}

struct QueuedDeliveriesAnswer: Sendable {
    let queued: Int
    let isComplete: Bool

    static let outputType = OutputType<QueuedDeliveriesAnswer>.object(
        "QueuedDeliveries",
        [
            .field("queued", .count, "Deliveries that are sent again.", \.queued),
            .field("isComplete", .flag, "Whether these were all; otherwise call again for the next.", \.isComplete),
        ])
}

extension WebhookTestResult {
    static let outputType = OutputType<WebhookTestResult>.object(
        "WebhookTest",
        [
            .field("isDelivered", .flag, "Whether the target answered with a 2xx status.", \.isDelivered),
            .field("status", .nullable(.whole(0...999)), "The HTTP status of its answer; null without one.", \.status),
            .field("error", .nullable(.text), "Why the call failed; null if it did not.", \.problem),
            .field("seconds", .seconds, "How long the call took, in seconds.", \.durationMs),
            .field("answer", .text, "The beginning of its answer's body.", \.answer),
        ])
}
