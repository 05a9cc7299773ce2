import Outbound
package import Rooms

/// Headers and body of a delivery. Pure; built for each attempt, since attempt number and signature differ.
package struct WebhookRequest: Sendable, Equatable {
    let headers: [Header]
    let body: String

    struct Header: Sendable, Equatable {
        let name: String
        let value: String
    }

    /// `atSeconds` is the wall clock, since 1970. Throws when the target's format cannot express the event.
    init(_ entry: WebhookDelivery, sender: WebhookSender, atSeconds: Int64) throws(WebhookBodyError) {
        let body: String
        switch entry.target.format {
        case .earshot: body = Self.earshotBody(entry)
        case .tencent:
            body = try TencentPushCallback.callback(for: entry).body(sender, atSeconds: atSeconds)
        case let other: throw .unknown(other)
        }
        self.init(
            kind: entry.event.kind.rawValue, key: Self.idempotencyKey(entry.event), body: body, sender: sender, atSeconds: atSeconds)
    }

    /// Adds the headers to a body, signed with the sender's key.
    init(kind: String, key: String, body: String, sender: WebhookSender, atSeconds: Int64) {
        self.body = body
        self.headers =
            [
                Header(name: "Content-Type", value: "application/json; charset=utf-8"),
                Header(name: "X-Earshot-Event", value: kind),
                Header(name: "X-Earshot-Delivery", value: key),
            ]
            + OutboundSignature.headers(key: sender.key, body: Array(body.utf8), atSeconds: atSeconds).map {
                Header(name: $0.name, value: $0.value)
            }
    }

    /// The same for all attempts, including resends on demand. The time distinguishes events with the same id from a store that no longer exists.
    package static func idempotencyKey(_ event: RoomEvent) -> String { "e\(event.id)-\(event.at)" }

    private static func earshotBody(_ entry: WebhookDelivery) -> String {
        #"{"idempotencyKey":"\#(self.idempotencyKey(entry.event))",\#(EventMessage.fields(of: entry.event)),"attempt":\#(entry.attempts + 1)}"#
    }
}

/// The target's format cannot express the event, or the format is unknown; retries are pointless.
struct WebhookBodyError: Error, Equatable, CustomStringConvertible {
    let description: String
}
