import Crypto

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
    /// What log, API and command line call it: its URL is often a secret. The same for the same URL after every restart.
    package let id: String
    package init(url: String, format: Format) {
        self.url = url
        self.format = format
        let hash = SHA256.hash(data: Array(url.utf8)).prefix(4).map { byte in (byte < 16 ? "0" : "") + String(byte, radix: 16) }
        self.id = "\(format.rawValue)-\(hash.joined())"
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

    /// Any 2xx: what a target answers besides is its own affair.
    package static func isDelivered(_ status: Int?) -> Bool { status.map { (200...299).contains($0) } ?? false }
}
