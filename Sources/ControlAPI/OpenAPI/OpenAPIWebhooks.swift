import Rooms
import Support

/// The document's `webhooks`: what the server sends to the targets of the setting `webhooks.urls`.
enum OpenAPIWebhooks {
    /// An event with what delivery adds. Its members are those of ``RoomEvent``'s schema.
    static let notice: Schema = {
        var properties: [Schema.Property] = [
            .init(
                name: "idempotencyKey", schema: .keywords("string"), help: "The same in every attempt; drop a notice that has come before.",
                isRequired: true)
        ]
        if case .named(_, .object(let event)) = RoomEvent.outputType.schema { properties += event }
        properties.append(
            .init(
                name: "attempt", schema: .keywords("integer", ("minimum", 1)), help: "The number of this attempt, from 1.", isRequired: true
            ))
        return .named("Notice", .object(properties))
    }()

    static func document(_ schemas: inout [String: JSONValue]) -> JSONValue {
        let headers: [(name: String, help: String)] = [
            ("X-Earshot-Event", "The kind of event."),
            ("X-Earshot-Delivery", "The idempotency key."),
            ("X-Earshot-Timestamp", "Seconds since 1970 when the notice was signed."),
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
                    "operationId": "receiveNotice", "summary": "An event, sent to each webhook target",
                    "description": """
                    Notices of one room arrive in order, each at least once: the next waits until the one before is accepted or given up. \
                    Targets in Tencent's format get other bodies, which docs/webhooks.md describes.
                    """,
                    "tags": ["callbacks"], "parameters": .array(parameters),
                    "requestBody": [
                        "required": true,
                        "content": [
                            "application/json": ["schema": Self.notice.json(&schemas), "example": SchemaExample.value(Self.notice)]
                        ],
                    ],
                    "responses": [
                        "2XX": ["description": "The notice is accepted."],
                        "default": ["description": "The notice is sent again, webhooks.retryInterval later."],
                    ],
                ]
            ]
        ]
    }
}
