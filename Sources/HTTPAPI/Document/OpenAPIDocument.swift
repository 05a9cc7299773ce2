import HTTPServer
import HTTPTypes
import NIOCore
import Rooms
package import Support

/// The OpenAPI 3.1 document, generated from the API's calls.
package enum OpenAPIDocument {
    /// `webhooks`: what the server sends, and names the schemas of that.
    package static func document(_ routes: [APIRoute], webhooks: (inout [String: JSONValue]) -> JSONValue) -> JSONValue {
        var schemas: [String: JSONValue] = [:]
        let error = APIError.schema.json(&schemas)
        var paths: [JSONValue.Member] = []
        var seen: Set<String> = []
        for path in routes.map(\.path) where seen.insert(path).inserted {
            let operations = routes.filter { $0.path == path }.map { route in  // compares our own words
                JSONValue.Member(name: route.method.rawValue.lowercased(), value: Self.operation(route, &schemas))
            }
            paths.append(.init(name: path, value: .object(operations)))
        }
        let webhooks = webhooks(&schemas)
        let responses = APIFailure.allCases.map { failure in
            JSONValue.Member(name: Self.name(failure), value: Self.response(failure, error))
        }
        return [
            "openapi": "3.1.0", "info": Self.info, "servers": [["url": .string(APIService.prefix)]],
            "tags": .array(APITag.allCases.map { ["name": .string($0.rawValue)] }), "paths": .object(paths),
            "webhooks": webhooks,
            "components": [
                "schemas": .object(schemas.sorted { $0.key < $1.key }.map(JSONValue.Member.init)), "responses": .object(responses),
                "securitySchemes": [
                    "token": ["type": "http", "scheme": "bearer", "description": "An API token; x-role is the lowest role that may call."]
                ],
            ],
        ]
    }

    private static let info: JSONValue = [
        "title": "Earshot", "version": "1",
        "description": """
        Rooms, streams and sessions of a live-streaming server.

        Every call except for this document needs a token with the role in its `x-role`, or a higher one: `ops` may do all that `backend` may, \
        and more; `admin` may do everything. Times are RFC 3339 in UTC; durations are seconds; lengths of text are in Unicode code points. \
        Names of apps, streams and tokens are compared byte for byte and must be in Unicode Normalization Form C, or the call gets 400. \
        Unknown fields and parameters are errors. A method that the path does not support gets 405 with `Allow` and the error type \
        `method_not_allowed`. Each answer has an `X-Request-Id`. Answers of 1 KiB or more are compressed for clients that send \
        `Accept-Encoding: gzip`. Browsers may call from pages of the origins in the setting `api.allowOrigins`.

        `RateLimit-Limit` is the number of calls that the token may make at once, `RateLimit-Remaining` how many of them are left, and \
        `RateLimit-Reset` the number of seconds until all of them are available again. `RateLimit-Policy` gives the limit and its window \
        in seconds. A call beyond the limit gets 429 with a `Retry-After` equal to `RateLimit-Reset`.

        Answers with a room have an `ETag`. A change with `If-Match`, which holds that tag or the room's `version` in quotes, is carried \
        out only if the room has not changed since; otherwise it gets 412. Likes, heartbeats and viewers do not count as changes. A GET \
        with `If-None-Match` gets 304 while the whole answer is the same. Calls that are not about a room ignore `If-Match`.

        A POST with an `Idempotency-Key` is carried out once. A repetition within a day, with the same token, path, query and body, gets \
        the first answer and `Idempotency-Replayed: true`, even after a crash of the server: the answer is stored in one transaction with \
        the change. While the first request is running, a repetition gets 409 with `Retry-After` and the rule `in_progress`. Only \
        successful answers are stored: a refused call changed nothing, and its repetition is carried out as a new call. Calls that change \
        nothing are carried out each time. Calls with `x-effect: live` act on connections and the floor, which end with the server's \
        process: their answers are stored after the effect, and a repetition that finds no answer is carried out again.
        """,
    ]

    // MARK: Operations

    private static func operation(_ route: APIRoute, _ schemas: inout [String: JSONValue]) -> JSONValue {
        var members: [JSONValue.Member] = [
            .init(name: "operationId", value: .string(route.name)),
            .init(name: "summary", value: .string(Self.sentences(route.summary).first)),
            .init(name: "description", value: .string(Self.description(route))),
            .init(name: "tags", value: [.string(route.tag.rawValue)]),
        ]
        if let role = route.role {
            members.append(.init(name: "x-role", value: .string(role.rawValue)))
            members.append(.init(name: "security", value: [["token": []]]))
        }
        if route.effect == .live { members.append(.init(name: "x-effect", value: "live")) }
        var parameters: [JSONValue] = []
        for input in route.pathForm.inputs { parameters.append(Self.parameter(input, "path", &schemas)) }
        for input in route.query.inputs { parameters.append(Self.parameter(input, "query", &schemas)) }
        if route.isConditional || (route.isVersioned && route.method == .get) {
            parameters.append(Self.tags("If-Match", "Carries out the call only if the room has one of these versions."))
        }
        if route.isVersioned, route.method == .get {
            parameters.append(Self.tags("If-None-Match", "Answers 304 if the answer's ETag is one of these."))
        }
        if route.isConditional {
            parameters.append(Self.tags("If-None-Match", "Carries out the call only if the room has none of these versions."))
        }
        if route.method == .post, route.role != nil { parameters.append(Self.idempotencyKey) }
        if route.isDownload {
            parameters += [
                Self.header("Range", "The bytes to return."),
                Self.header("If-Range", "Applies Range only if the file has this ETag; otherwise the whole file is returned."),
            ]
        }
        if !parameters.isEmpty { members.append(.init(name: "parameters", value: .array(parameters))) }
        if let body = route.body {
            let content: JSONValue = [
                "application/json": ["schema": body.schema.json(&schemas), "example": SchemaExample.value(body.schema, optional: 2)]
            ]
            members.append(.init(name: "requestBody", value: ["required": .bool(!body.isOptional), "content": content]))
        }
        members.append(.init(name: "responses", value: .object(Self.successes(route, &schemas) + route.allFailures.map(Self.reference))))
        return .object(members)
    }

    /// The first sentence, without its full stop, and the rest.
    private static func sentences(_ text: String) -> (first: String, rest: String) {
        guard let end = text.firstRange(of: ". ") else { return (text.hasSuffix(".") ? String(text.dropLast()) : text, "") }
        return (String(text[..<end.lowerBound]), String(text[end.upperBound...]))
    }

    /// The rest of the summary, and sentences derived from the route.
    private static func description(_ route: APIRoute) -> String {
        var parts = [Self.sentences(route.summary).rest]
        switch route.role {
        case .admin?: parts.append("Needs a token with role admin.")
        case let role?: parts.append("Needs a token with role \(role.rawValue) or higher.")
        case nil: parts.append("Needs no token.")
        }
        switch route.effect {
        case .nothing: if route.method == .get { parts.append("Changes nothing.") }
        case .stored: parts.append("Carried out once per Idempotency-Key.")
        case .live: parts.append("Acts on connections: carried out once per Idempotency-Key, unless the server restarts before it answers.")
        }
        if route.isConditional {
            parts.append("Carried out only if the room's version matches If-Match and If-None-Match, when these are given.")
        }
        if route.isDownload { parts.append("Supports Range. A signed link opens the file without a token.") }
        return parts.filter { !$0.isEmpty }.joined(separator: " ")
    }

    private static func parameter(_ input: AnyInput, _ part: String, _ schemas: inout [String: JSONValue]) -> JSONValue {
        var members: [JSONValue.Member] = [
            .init(name: "name", value: .string(input.name)), .init(name: "in", value: .string(part)),
            .init(name: "required", value: .bool(input.isRequired)), .init(name: "description", value: .string(input.help)),
            .init(name: "schema", value: input.schema.json(&schemas)),
        ]
        // Commas separate a list's items.
        if input.schema.type == "array" { members += [.init(name: "style", value: "form"), .init(name: "explode", value: false)] }
        return .object(members)
    }

    private static func tags(_ name: String, _ help: String) -> JSONValue {
        [
            "name": .string(name), "in": "header", "required": false, "description": .string(help),
            "schema": ["type": "string", "pattern": .string(EntityTags.pattern)],
        ]
    }

    private static let idempotencyKey: JSONValue = [
        "name": "Idempotency-Key", "in": "header", "required": false,
        "description": "Makes the request safe to repeat: a repetition with the same key gets the first answer.",
        "schema": ["type": "string", "pattern": "^[!-~]{1,128}$"],
    ]

    private static func header(_ name: String, _ help: String) -> JSONValue {
        [
            "name": .string(name), "in": "header", "required": false, "description": .string(help), "schema": ["type": "string"],
        ]
    }

    private static func successes(_ route: APIRoute, _ schemas: inout [String: JSONValue]) -> [JSONValue.Member] {
        let whole = Self.success(route, &schemas)
        if route.isVersioned, route.method == .get {
            let unchanged: JSONValue = ["description": "The answer is still one that If-None-Match lists.", "headers": ["ETag": Self.eTag]]
            return [whole, .init(name: "304", value: unchanged)]
        }
        // 206 answers a Range (RFC 9110 §15.3.7).
        return route.isDownload ? [whole, .init(name: "206", value: whole.value)] : [whole]
    }

    private static func success(_ route: APIRoute, _ schemas: inout [String: JSONValue]) -> JSONValue.Member {
        var content: [JSONValue.Member] = []
        for (type, schema) in route.success.content {
            let json = content.first?.value["example"]
            let example = schema.map { SchemaExample.value($0) } ?? .string(MediaExample.text(type, json: json))
            content.append(.init(name: type, value: ["schema": schema?.json(&schemas) ?? Self.bytes(type), "example": example]))
        }
        var response: [JSONValue.Member] = [.init(name: "description", value: .string(route.summary))]
        var headers: [JSONValue.Member] = []
        if route.success.location != nil {
            let path: JSONValue = ["description": "The path of the created object.", "schema": ["type": "string"]]
            headers.append(.init(name: "Location", value: path))
        }
        if route.isVersioned { headers.append(.init(name: "ETag", value: Self.eTag)) }
        if !headers.isEmpty { response.append(.init(name: "headers", value: .object(headers))) }
        response.append(.init(name: "content", value: .object(content)))
        return .init(name: String(route.success.status.code), value: .object(response))
    }

    /// A body that is not JSON. Generators recognise bytes by OpenAPI 3.0's format keyword.
    private static func bytes(_ type: String) -> JSONValue {
        type.hasPrefix("text/") || type.hasSuffix("+xml") ? ["type": "string"] : ["type": "string", "format": "binary"]
    }

    private static let eTag: JSONValue = [
        "description": "The entity tag, for If-Match and If-None-Match.", "schema": ["type": "string"],
    ]

    private static func reference(_ failure: APIFailure) -> JSONValue.Member {
        .init(name: String(failure.rawValue), value: ["$ref": .string("#/components/responses/\(Self.name(failure))")])
    }

    private static func response(_ failure: APIFailure, _ error: JSONValue) -> JSONValue {
        ["description": .string(failure.help), "content": ["application/json": ["schema": error]]]
    }

    private static func name(_ failure: APIFailure) -> String {
        let name = "\(failure)"
        return name.prefix(1).uppercased() + name.dropFirst()
    }
}
