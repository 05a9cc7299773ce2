import Support

/// A webhook made by the API: its URL, its events, and the secret that signs its deliveries. A value; printing it shows no secret.
package struct StoredWebhook: Sendable, Equatable, CustomStringConvertible {
    package let id: Int64
    package var name: String
    /// Partly secret: only its origin is shown.
    package var url: String
    package let format: WebhookTarget.Format
    /// Only events of these kinds; empty: all.
    package var kinds: [RoomEvent.Kind]
    /// Only events of rooms and streams whose names have one of these prefixes; empty: all events, including the server's own.
    package var rooms: [String]
    package var isPaused: Bool
    package let secret: String
    /// Milliseconds since 1970.
    package let createdAt: Int64

    package init(
        id: Int64, name: String, url: String, format: WebhookTarget.Format, kinds: [RoomEvent.Kind], rooms: [String], isPaused: Bool,
        secret: String, createdAt: Int64
    ) {
        self.id = id
        self.name = name
        self.url = url
        self.format = format
        self.kinds = kinds
        self.rooms = rooms
        self.isPaused = isPaused
        self.secret = secret
        self.createdAt = createdAt
    }

    package var description: String { "\(self.target.id) \(self.target.origin)" }

    package var target: WebhookTarget { WebhookTarget(hook: self) }

    package func accepts(_ event: RoomEvent) -> Bool {
        (self.kinds.isEmpty || self.kinds.contains(event.kind))
            && (self.rooms.isEmpty || event.subject.map { TokenScope(apps: [], rooms: self.rooms).holds(name: $0) } ?? false)
    }

    /// Most prefixes of room ids.
    package static let mostRooms = 16
    package static let nameLength = 64
}

/// A call's changes to a webhook. Nil stays unchanged.
package struct WebhookPatch: Sendable, Equatable {
    package var name: String?
    package var url: String?
    package var kinds: [RoomEvent.Kind]?
    package var rooms: [String]?
    package var isPaused: Bool?
    package init() {}
}

/// A query for failed deliveries that are to be sent again.
package struct RedeliveryQuery: Sendable, Equatable {
    /// Empty: all.
    package var kinds: [RoomEvent.Kind] = []
    /// Range of the events' times, in milliseconds since 1970.
    package var fromMs: Int64?
    package var toMs: Int64?
    package var limit = 1_000
    package init() {}
}

extension RoomLimits {
    /// Maximum webhooks made by the API, since each has concurrent attempts of its own.
    package static let webhooks = 32
    /// Maximum deliveries that wait for one target: past it the oldest are given up, so that a dead target cannot fill the disk.
    package static let waitingDeliveries = 100_000
}

extension AuditChange {
    /// A new, changed or deleted webhook. Shows only the origin of its URL, and nothing of its secret.
    package mutating func webhook(from old: StoredWebhook?, to new: StoredWebhook?) {
        self.object = (new ?? old).map { "webhook/\($0.id)" }
        func texts(_ list: [String]?) -> JSONValue? { list.flatMap { $0.isEmpty ? nil : .array($0.map(JSONValue.string)) } }
        self.add("name", from: old.map { .string($0.name) }, to: new.map { .string($0.name) })
        self.add("url", from: old.map { .string($0.target.origin) }, to: new.map { .string($0.target.origin) })
        if let old, let new, old.url != new.url, old.target.origin == new.target.origin { self.add("path", from: "former", to: "new") }
        self.add("format", from: old.map { .string($0.format.rawValue) }, to: new.map { .string($0.format.rawValue) })
        self.add("kinds", from: texts(old?.kinds.map(\.rawValue)), to: texts(new?.kinds.map(\.rawValue)))
        self.add("rooms", from: texts(old?.rooms), to: texts(new?.rooms))
        self.add("isPaused", from: old.map { .bool($0.isPaused) }, to: new.map { .bool($0.isPaused) })
    }
}
