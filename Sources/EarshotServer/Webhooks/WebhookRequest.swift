import Rooms

/// A notice as it goes to its target: headers and body. Pure; made anew for each attempt, since attempt and signature differ.
struct WebhookRequest: Sendable, Equatable {
    let headers: [Header]
    let body: String

    struct Header: Sendable, Equatable {
        let name: String
        let value: String
    }

    /// What the bodies say about this server.
    struct Sender: Sendable {
        let key: String
        /// Push domain, of Tencent's bodies.
        let domain: String
        /// Address of this node, of Tencent's bodies.
        let node: String
        /// How others reach RTMP here: "rtmp://live.example.com".
        var rtmp: String
        /// The same for HTTP.
        var http: String
    }

    /// `atSeconds` is the wall clock, since 1970. Throws when the event's data is not of the kind that the target's format tells of.
    init(_ entry: OutboxEntry, sender: Sender, atSeconds: Int64) throws(WebhookBodyError) {
        let body: String
        switch entry.target.format {
        case .earshot: body = Self.earshotBody(entry)
        case .tencent:
            body = try TencentNotice.callback(for: entry.event).body(sender, atSeconds: atSeconds)
        }
        self.body = body
        self.headers =
            [
                Header(name: "Content-Type", value: "application/json; charset=utf-8"),
                Header(name: "X-Earshot-Event", value: entry.event.kind.rawValue),
                Header(name: "X-Earshot-Delivery", value: Self.idempotencyKey(entry.event)),
            ]
            + OutboundSignature.headers(key: sender.key, body: Array(body.utf8), atSeconds: atSeconds).map {
                Header(name: $0.name, value: $0.value)
            }
    }

    /// The same for every attempt, and for a notice that is sent once more on demand. The time keeps events apart that had the same id in a
    /// store which is no more.
    static func idempotencyKey(_ event: RoomEvent) -> String { "e\(event.id)-\(event.at)" }

    private static func earshotBody(_ entry: OutboxEntry) -> String {
        #"{"idempotencyKey":"\#(self.idempotencyKey(entry.event))",\#(EventMessage.fields(of: entry.event)),"attempt":\#(entry.attempts + 1)}"#
    }
}

/// An event that cannot be told in its target's format: no attempt will change that.
struct WebhookBodyError: Error, Equatable, CustomStringConvertible {
    let description: String
}
