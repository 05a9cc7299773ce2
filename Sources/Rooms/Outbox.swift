/// A webhook target: where a kind of notice goes. From the configuration.
package struct WebhookTarget: Sendable, Equatable {
    package enum Format: String, Sendable, CaseIterable {
        /// Event, numbered and signed with HMAC-SHA256.
        case earshot
        /// Stream begin and end in the shape of Tencent's callbacks.
        case tencent
    }
    package let url: String
    package let format: Format
    package init(url: String, format: Format) {
        self.url = url
        self.format = format
    }
}

/// A notice on its way to a webhook: stored with its event, gone from the queue only when delivered or given up.
package struct OutboxEntry: Sendable, Equatable {
    package enum State: String, Sendable, CaseIterable { case pending, delivered, failed }
    package let id: Int64
    package let event: RoomEvent
    package let target: WebhookTarget
    package let state: State
    package let attempts: Int
    /// When the next attempt is due.
    package let dueAt: Int64
    /// HTTP status of the last attempt; nil without an answer.
    package let lastStatus: Int?
    package let lastError: String?
    package let lastAttemptAt: Int64?
    /// Of the last attempt.
    package let durationMs: Int64?
    package let deliveredAt: Int64?
}
