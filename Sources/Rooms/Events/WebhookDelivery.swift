import Crypto
import Support

/// A webhook, from the settings or the API, and the format of its deliveries.
package struct WebhookTarget: Sendable, Equatable {
    /// The name of the format of a target's deliveries, as it is stored. The sender of deliveries knows the formats: see `WebhookTarget.Format.known` in
    /// Notifications.
    package struct Format: RawRepresentable, Sendable, Hashable {
        package let rawValue: String
        package init(rawValue: String) { self.rawValue = rawValue }

        /// Event, numbered and signed with HMAC-SHA256.
        package static let earshot = Format(rawValue: "earshot")
    }
    package let url: String
    package let format: Format
    /// The target's name in logs, API and command line, as its URL is often secret. Depends only on URL and format.
    package let id: String
    /// The number of a target that the API made; nil for one in the settings.
    package let hookID: Int64?
    /// Signs the target's deliveries; nil: the server's key. Secret.
    package let key: String?

    package init(url: String, format: Format) {
        self.url = url
        self.format = format
        self.hookID = nil
        self.key = nil
        self.id = "\(format.rawValue)-\(SecretText.hex(SHA256.hash(data: Array(url.utf8)).prefix(4)))"
    }

    package init(hook: StoredWebhook) { self.init(hookID: hook.id, url: hook.url, format: hook.format, key: hook.secret) }

    private init(hookID: Int64, url: String, format: Format, key: String?) {
        self.url = url
        self.format = format
        self.id = "webhook-\(hookID)"
        self.hookID = hookID
        self.key = key
    }

    /// The target's name in the rows of deliveries: its URL, or its number, so that a changed URL also applies to waiting deliveries.
    package var row: String { self.hookID.map { "\(Self.mark)\($0)" } ?? self.url }

    /// Reads a row of deliveries. A target of the API then has no URL.
    package init(row: String, format: Format) {
        if row.hasPrefix(Self.mark), let id = Int64(row.dropFirst(Self.mark.count)) {
            self.init(hookID: id, url: "", format: format, key: nil)
        } else {
            self.init(url: row, format: format)
        }
    }

    /// No URL in the settings begins with this.
    private static let mark = "webhook:"

    /// Scheme, host and port: the rest of a webhook's URL is often secret. User names are not allowed.
    package var origin: String { String(Self.origin(of: self.url)) }

    package static func origin(of url: String) -> Substring {
        guard let colon = url.firstIndex(of: ":") else { return url.prefix { $0 != "/" && $0 != "?" && $0 != "#" } }
        let host = url[colon...].dropFirst().drop { $0 == "/" }
        return url[..<(host.firstIndex { $0 == "/" || $0 == "?" || $0 == "#" } ?? url.endIndex)]
    }
}

/// An event for one webhook. Stored with its event; leaves the queue only when delivered or given up.
package struct WebhookDelivery: Sendable, Equatable {
    package enum State: String, Sendable, CaseIterable { case pending, delivered, failed }
    package let id: Int64
    package let event: RoomEvent
    package var target: WebhookTarget
    /// The query of the push that the event tells of, as in ``PushRequest/query``. Read only for formats that have a field for it.
    package var query: String?
    package let state: State
    package let attempts: Int
    /// When the next attempt is due.
    package let dueAt: Int64
    /// HTTP status of the last attempt; nil if there was no answer.
    package let lastStatus: Int?
    package let lastError: String?
    package let lastAttemptAt: Int64?
    /// Duration of the last attempt.
    package let durationMs: Int64?
    package let deliveredAt: Int64?
    /// Where its age starts: at its event, or when it was queued again.
    package let queuedAt: Int64

    /// `queuedAt`: nil for the event's time.
    package init(
        id: Int64, event: RoomEvent, target: WebhookTarget, state: State, attempts: Int, dueAt: Int64, lastStatus: Int?, lastError: String?,
        lastAttemptAt: Int64?, durationMs: Int64?, deliveredAt: Int64?, queuedAt: Int64? = nil
    ) {
        self.id = id
        self.event = event
        self.target = target
        self.state = state
        self.attempts = attempts
        self.dueAt = dueAt
        self.lastStatus = lastStatus
        self.lastError = lastError
        self.lastAttemptAt = lastAttemptAt
        self.durationMs = durationMs
        self.deliveredAt = deliveredAt
        self.queuedAt = queuedAt ?? event.at
    }

    /// Whether the status is 2xx; the rest of the answer does not matter.
    package static func isDelivered(_ status: Int?) -> Bool { status.map { (200...299).contains($0) } ?? false }
}
