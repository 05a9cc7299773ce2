import Crypto

/// A configured webhook target and the format of its notices.
package struct WebhookTarget: Sendable, Equatable {
    package enum Format: String, Sendable, CaseIterable {
        /// Event, numbered and signed with HMAC-SHA256.
        case earshot
        /// Stream begin and end in the shape of Tencent's callbacks.
        case tencent
    }
    package let url: String
    package let format: Format
    /// The target's name in logs, API and command line, as its URL is often secret. Depends only on URL and format.
    package let id: String
    package init(url: String, format: Format) {
        self.url = url
        self.format = format
        let hash = SHA256.hash(data: Array(url.utf8)).prefix(4).map { byte in (byte < 16 ? "0" : "") + String(byte, radix: 16) }
        self.id = "\(format.rawValue)-\(hash.joined())"
    }
}

/// A notice for a webhook. Stored with its event; leaves the queue only when delivered or given up.
package struct OutboxEntry: Sendable, Equatable {
    package enum State: String, Sendable, CaseIterable { case pending, delivered, failed }
    package let id: Int64
    package let event: RoomEvent
    package let target: WebhookTarget
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

    package init(
        id: Int64, event: RoomEvent, target: WebhookTarget, state: State, attempts: Int, dueAt: Int64, lastStatus: Int?, lastError: String?,
        lastAttemptAt: Int64?, durationMs: Int64?, deliveredAt: Int64?
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
    }

    /// Whether the status is 2xx; the rest of the answer does not matter.
    package static func isDelivered(_ status: Int?) -> Bool { status.map { (200...299).contains($0) } ?? false }
}
