import HTTPAPI
import HTTPServer
import HTTPTypes
import Notifications
import RoomRegistry
import Rooms
import ServerConfiguration
import Support

/// Inputs of the calls on webhooks.
private enum WebhookInputs {
    static let id = Input("webhookId", .whole(1...Int64.max), "The target's number.").required
    static let name = Input("name", .text(length: 1...StoredWebhook.nameLength), "The target's name, for people.")
    static let url = Input(
        "url", .text(length: 8...2_048).example("https://app.example.com/events"),
        "Where events are posted: http:// or https://, at a public address or one in outbound.allowPrivate.")
    static let format = Input(
        "format", .choice(of: WebhookTarget.Format.known), "earshot, or the shape of Tencent's callbacks.", fallback: .earshot)
    static let kinds = Input("kinds", .kinds, "Only events of these kinds; empty: all.")
    static let rooms = Input(
        "rooms", .names(most: StoredWebhook.mostRooms), "Only events of rooms and streams whose names begin so; empty: all.")
    static let isPaused = Input("isPaused", .flag, "Whether deliveries wait instead of being sent.")
    static let from = Input("from", .instant, "Only deliveries of events at this time or later.")
    static let to = Input("to", .instant, "Only deliveries of events before this time.")
    static let limit = Input("limit", .whole(1...1_000), "The maximum number of deliveries, the oldest first.", fallback: 1_000)
}

enum WebhookRoutes {
    /// Webhooks that calls make.
    static let all: [ControlRoute] = [
        ControlRoute(
            .get, "/webhooks", "listWebhooks", .webhooks, .admin, .server,
            "List the webhooks made by calls. Those of the settings are in /webhooks/targets.",
            answers: WebhookListAnswer.outputType
        ) { call in
            var list: [WebhookAnswer] = []
            for hook in try await call.rooms.webhooks() { list.append(try await WebhookAnswer(hook, call)) }
            return WebhookListAnswer(list: list)
        },
        ControlRoute(
            storing: "/webhooks", "createWebhook", .webhooks, .admin, .server,
            "Add a webhook. Only this answer contains its secret, which signs its calls.",
            body: [
                WebhookInputs.name.required, WebhookInputs.url.required, WebhookInputs.format,
                WebhookInputs.kinds, WebhookInputs.rooms, WebhookInputs.isPaused,
            ],
            answers: NewWebhookAnswer.outputType, status: .created, location: ("/webhooks/", "webhookId"), failures: [.conflict],
            secret: "secret"
        ) { call, keep in
            let hook = StoredWebhook(
                id: 0, name: try call.value(WebhookInputs.name), url: try Self.checked(try call.value(WebhookInputs.url), call),
                format: try call.value(WebhookInputs.format), kinds: call[WebhookInputs.kinds] ?? [],
                rooms: call[WebhookInputs.rooms] ?? [], isPaused: call[WebhookInputs.isPaused] ?? false, secret: SecretText.random(),
                createdAt: call.nowMs)
            return try await keep({ NewWebhookAnswer(webhook: WebhookAnswer($0, pending: 0, status: nil), secret: hook.secret) }) {
                try await call.rooms.create(hook, keeping: $0)
            }
        },
        ControlRoute(
            .get, "/webhooks/{webhookId}", "getWebhook", .webhooks, .admin, .server, "Look a webhook up.",
            in: [WebhookInputs.id],
            answers: WebhookAnswer.outputType
        ) { call in
            try await WebhookAnswer(try await Self.webhook(call), call)
        },
        ControlRoute(
            .patch, "/webhooks/{webhookId}", "updateWebhook", .webhooks, .admin, .server,
            "Change a webhook; omitted fields stay unchanged. A new URL holds for what waits already.",
            in: [WebhookInputs.id],
            body: [
                WebhookInputs.name, WebhookInputs.url, WebhookInputs.kinds, WebhookInputs.rooms,
                WebhookInputs.isPaused,
            ], answers: WebhookAnswer.outputType
        ) { call in
            var patch = WebhookPatch()
            patch.name = call[WebhookInputs.name]
            patch.url = try call[WebhookInputs.url].map { try Self.checked($0, call) }
            patch.kinds = call[WebhookInputs.kinds]
            patch.rooms = call[WebhookInputs.rooms]
            patch.isPaused = call[WebhookInputs.isPaused]
            let id = try call.value(WebhookInputs.id)
            return try await WebhookAnswer(try Self.found(try await call.rooms.change(id, patch), id), call)
        },
        ControlRoute(
            .delete, "/webhooks/{webhookId}", "deleteWebhook", .webhooks, .admin, .server,
            "Delete a webhook, and the deliveries that wait for it.", in: [WebhookInputs.id],
            answers: DroppedDeliveriesAnswer.outputType
        ) { call in
            let id = try call.value(WebhookInputs.id)
            return DroppedDeliveriesAnswer(dropped: try Self.found(try await call.rooms.deleteWebhook(id), id))
        },
        Self.pausing("pause", "pauseWebhook", "Pause a webhook: its deliveries wait, at most for rooms.history.", isPaused: true),
        Self.pausing(
            "resume", "resumeWebhook", "Send a paused webhook its deliveries again, those that waited first.", isPaused: false),
        ControlRoute(
            .post, "/webhooks/{webhookId}/test", "testWebhook", .webhooks, .admin, .server,
            "Send a signed test call of the kind webhook.test, and answer what came back. Nothing is stored or retried.",
            in: [WebhookInputs.id], answers: WebhookTestResult.outputType, effect: .nothing
        ) { call in
            await call.services.webhookTester.test(try await Self.webhook(call), atMs: WallClock.ms)
        },
        ControlRoute(
            storing: "/webhooks/deliveries/redeliver", "redeliverDeliveries", .webhooks, .ops, .server,
            "Send failed deliveries again, by target, time and kind. Each is sent again once only.",
            body: [DeliveryRoutes.target, WebhookInputs.kinds, WebhookInputs.from, WebhookInputs.to, WebhookInputs.limit],
            answers: QueuedDeliveriesAnswer.outputType
        ) { call, keep in
            var query = RedeliveryQuery()
            query.kinds = call[WebhookInputs.kinds] ?? []
            query.fromMs = call[WebhookInputs.from]
            query.toMs = call[WebhookInputs.to]
            query.limit = Int(try call.value(WebhookInputs.limit))
            let (asked, limit) = (query, query.limit)
            // Failed deliveries to targets that are gone would only fail again.
            let targets = if let target = try await DeliveryRoutes.target(call) { [target] } else { try await DeliveryRoutes.targets(call) }
            return try await keep({ (queued: Int) in
                QueuedDeliveriesAnswer(queued: queued, isComplete: queued < limit)
            }) { try await call.rooms.redeliver(to: targets, asked, keeping: $0) }
        },
    ]

    private static func pausing(_ action: String, _ name: String, _ summary: String, isPaused: Bool) -> ControlRoute {
        ControlRoute(
            storing: "/webhooks/{webhookId}/\(action)", name, .webhooks, .admin, .server, summary, in: [WebhookInputs.id],
            answers: WebhookAnswer.outputType
        ) { call, keep in
            let id = try call.value(WebhookInputs.id)
            var patch = WebhookPatch()
            patch.isPaused = isPaused
            let change = patch
            let pending = try await call.rooms.pendingDeliveries(of: try await Self.webhook(call).target)
            return try await keep({ (hook: StoredWebhook?) in
                let hook = try Self.found(hook, id)
                return WebhookAnswer(hook, pending: pending, status: call.services.webhookLog[hook.target.id])
            }) { try await call.rooms.change(id, change, keeping: $0) }
        }
    }

    private static func webhook(_ call: APICall) async throws -> StoredWebhook {
        let id = try call.value(WebhookInputs.id)
        return try Self.found(try await call.rooms.webhook(id), id)
    }

    private static func found<Value>(_ value: Value?, _ id: Int64) throws(APIError) -> Value {
        guard let value else { throw APIError.notFound("webhook", "\(id)", field: "webhookId") }
        return value
    }

    /// The URL, if the server could call it. The error does not repeat it: it may hold a secret.
    private static func checked(_ url: String, _ call: APICall) throws(APIError) -> String {
        if let problem = call.services.webhookTester.problem(ofURL: url) { throw APIError(FieldError("url", "", problem)) }
        return url
    }
}

extension InputType<[RoomEvent.Kind]> {
    fileprivate static var kinds: InputType {
        let words = RoomEvent.Kind.allCases.map(\.rawValue)
        let item: JSONValue = ["type": "string", "enum": .array(words.map(JSONValue.string))]
        let schema = Schema.keywords("array", ("items", item), ("maxItems", .integer(Int64(words.count))))
        return InputType(schema) { (json: JSONValue) throws(BrokenRule) in
            guard case .array(let values) = json, values.count <= words.count else {
                throw BrokenRule("expected a list of at most \(words.count) kinds of events")
            }
            var kinds: [RoomEvent.Kind] = []
            for value in values {
                guard case .string(let text) = value, let kind = RoomEvent.Kind(rawValue: text) else {
                    let nearest = Suggestion.nearest(value.shown, words).map { "; did you mean \($0)?" } ?? ""
                    throw BrokenRule("is no kind of event\(nearest)", value: value.shown)
                }
                kinds.append(kind)
            }
            return kinds
        }
    }
}
