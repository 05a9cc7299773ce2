import HTTPAPI
import Rooms
package import Support

/// The document's `webhooks`: the requests that the server sends to the targets of the setting `webhooks.urls`.
package enum OpenAPIWebhooks {
    /// An event with the members that a delivery adds, in one variant per kind.
    static let event = Schema.named("WebhookEvent", .variants(by: "kind", Self.forms))

    private static let forms = RoomEvent.Kind.allCases.map { kind in
        kind.variant("WebhookEvent", [Self.idempotencyKey] + RoomEvent.fields(of: kind).map(\.property) + [Self.attempt])
    }

    private static let idempotencyKey = Schema.Property(
        name: "idempotencyKey", schema: .keywords("string"), help: "The same in every attempt; drop an event that has come before.",
        isRequired: true)

    private static let attempt = Schema.Property(
        name: "attempt", schema: .keywords("integer", ("minimum", 1)), help: "The number of this attempt, from 1.", isRequired: true)

    private static let examples = zip(RoomEvent.Kind.allCases, Self.forms).map { kind, form in
        JSONValue.Member(
            name: kind.rawValue, value: ["summary": .string(kind.form.help), "value": SchemaExample.value(form.schema)])
    }

    package static func document(_ schemas: inout [String: JSONValue]) -> JSONValue {
        let headers: [(name: String, help: String)] = [
            ("X-Earshot-Event", "The kind of event."),
            ("X-Earshot-Delivery", "The idempotency key."),
            ("X-Earshot-Timestamp", "Seconds since 1970 when the request was signed."),
            (
                "X-Earshot-Signature",
                "sha256= and the HMAC-SHA256 in hexadecimal of the timestamp, a full stop and the body, under webhooks.key."
            ),
        ]
        let parameters = headers.map { header -> JSONValue in
            [
                "name": .string(header.name), "in": "header", "required": true, "description": .string(header.help),
                "schema": ["type": "string"],
            ]
        }
        return [
            "event": [
                "post": [
                    "operationId": "receiveDelivery", "summary": "An event, sent to each webhook",
                    "description": """
                    Events of one room arrive in order, each at least once: the next waits until the one before is accepted or given up. \
                    Targets in Tencent's format get other bodies, which docs/webhooks.md describes.
                    """,
                    "tags": ["webhooks"], "parameters": .array(parameters),
                    "requestBody": [
                        "required": true,
                        "content": [
                            "application/json": ["schema": Self.event.json(&schemas), "examples": .object(Self.examples)]
                        ],
                    ],
                    "responses": [
                        "2XX": ["description": "The event is accepted."],
                        "default": ["description": "The event is sent again, webhooks.retryInterval later."],
                    ],
                ]
            ]
        ]
    }
}
