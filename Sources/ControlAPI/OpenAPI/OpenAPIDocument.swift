import HTTPServer
import HTTPTypes
import Rooms
import Support

/// The OpenAPI 3.1 document, generated from the API's calls.
enum OpenAPIDocument {
    /// Made once.
    static let bytes: [UInt8] = {
        var bytes: [UInt8] = []
        Self.document(APIRoute.all).write(to: &bytes)
        return bytes
    }()

    static func document(_ routes: [APIRoute]) -> JSONValue {
        var schemas: [String: JSONValue] = [:]
        let error = APIError.schema.json(&schemas)
        var paths: [JSONValue.Member] = []
        var seen: Set<String> = []
        for path in routes.map(\.path) where seen.insert(path).inserted {
            let operations = routes.filter { $0.path == path }.map { route in
                JSONValue.Member(name: route.method.rawValue.lowercased(), value: Self.operation(route, &schemas))
            }
            paths.append(.init(name: path, value: .object(operations)))
        }
        let responses = APIFailure.allCases.map { failure in
            JSONValue.Member(name: Self.name(failure), value: Self.response(failure, error))
        }
        return [
            "openapi": "3.1.0", "info": Self.info, "servers": [["url": .string(APIService.prefix)]],
            "tags": .array(APITag.allCases.map { ["name": .string($0.rawValue)] }), "paths": .object(paths),
            "components": [
                "schemas": .object(schemas.sorted { $0.key < $1.key }.map(JSONValue.Member.init)), "responses": .object(responses),
                "securitySchemes": [
                    "token": ["type": "http", "scheme": "bearer", "description": "An API token; see the operation's x-role."]
                ],
            ],
        ]
    }

    private static let info: JSONValue = [
        "title": "Earshot", "version": "1",
        "description": """
        Rooms, streams and sessions of a live-streaming server.

        Every call but this document needs a token of the role named by its `x-role` (admin may do everything, ops what app may, and more). \
        Times are RFC 3339 in UTC; durations are seconds; lengths of text are in Unicode code points. Unknown fields and parameters are \
        errors. Each answer has an `X-Request-Id`; `RateLimit-Limit`, `-Remaining` and `-Reset` tell how many calls the token has at once, \
        how many of them are left, and in how many seconds all of them are there again (`RateLimit-Policy`: so many in so many seconds). \
        With none left a call gets 429, whose `Retry-After` is the same as `-Reset`. A method that a path does not have gets 405 with \
        `Allow` and the error type `method_not_allowed`.

        A room's answers have an `ETag`. `If-Match` with it, or with the room's `version` in quotes, makes a change only when the room has \
        not changed since: otherwise 412. Likes, heartbeats and viewers are no changes in this sense. `If-None-Match` on a GET gets 304 while \
        all of the answer is the same. Answers of 1 KiB or more are compressed for clients that send `Accept-Encoding: gzip`. Pages of the \
        origins in the setting `api.allowOrigins` may call from browsers.

        A POST with an `Idempotency-Key` is carried out once: a repetition within a day, with the same token, path, query and body, gets \
        the first answer with `Idempotency-Replayed: true`, also after a crash of the server: the answer is stored in one transaction with \
        what the call changes. While the first is being carried out, a repetition gets 409 with `Retry-After` and the rule `in_progress`. \
        Only what succeeded is kept; a call that was refused changed nothing, and its repetition is judged anew. Calls that change nothing \
        are simply carried out again. Calls with `x-effect: live` act on connections and the floor, which end with the server's process: \
        their answers are stored after the effect, and a repetition that finds none is carried out again.
        """,
    ]

    // MARK: Operations

    private static func operation(_ route: APIRoute, _ schemas: inout [String: JSONValue]) -> JSONValue {
        var members: [JSONValue.Member] = [
            .init(name: "operationId", value: .string(route.name)), .init(name: "summary", value: .string(route.summary)),
            .init(name: "tags", value: [.string(route.tag.rawValue)]),
        ]
        if let role = route.role {
            members.append(.init(name: "x-role", value: .string(role.rawValue)))
            members.append(.init(name: "security", value: [["token": []]]))
        }
        if route.effect == .live { members.append(.init(name: "x-effect", value: "live")) }
        var parameters: [JSONValue] = []
        for input in route.pathForm.inputs { parameters.append(Self.parameter(input, "path", &schemas)) }
        for input in route.query.inputs {
            parameters.append(Self.parameter(input, "query", &schemas))
            parameters += input.formerNames.map { Self.formerParameter($0, input, &schemas) }
        }
        if route.isConditional || (route.isVersioned && route.method == .get) {
            parameters.append(Self.tags("If-Match", "Only of this version."))
        }
        if route.isVersioned, route.method == .get { parameters.append(Self.tags("If-None-Match", "Only if it is not this any more.")) }
        if route.isConditional { parameters.append(Self.tags("If-None-Match", "Only if it is of none of these versions.")) }
        if route.method == .post, route.role != nil { parameters.append(Self.idempotencyKey) }
        if route.isDownload {
            parameters += [Self.header("Range", "Which bytes."), Self.header("If-Range", "Only of the file with this ETag.")]
        }
        if !parameters.isEmpty { members.append(.init(name: "parameters", value: .array(parameters))) }
        if let body = route.body {
            let content: JSONValue = ["application/json": ["schema": body.schema.json(&schemas)]]
            members.append(.init(name: "requestBody", value: ["required": .bool(!body.isOptional), "content": content]))
        }
        members.append(.init(name: "responses", value: .object(Self.successes(route, &schemas) + route.allFailures.map(Self.reference))))
        return .object(members)
    }

    private static func parameter(_ input: AnyInput, _ place: String, _ schemas: inout [String: JSONValue]) -> JSONValue {
        var members: [JSONValue.Member] = [
            .init(name: "name", value: .string(input.name)), .init(name: "in", value: .string(place)),
            .init(name: "required", value: .bool(input.isRequired)), .init(name: "description", value: .string(input.help)),
            .init(name: "schema", value: input.schema.json(&schemas)),
        ]
        // Commas separate a list's items.
        if input.schema.type == "array" { members += [.init(name: "style", value: "form"), .init(name: "explode", value: false)] }
        return .object(members)
    }

    private static func formerParameter(_ name: String, _ input: AnyInput, _ schemas: inout [String: JSONValue]) -> JSONValue {
        [
            "name": .string(name), "in": "query", "required": false, "deprecated": true,
            "description": .string("Former name of \(input.name)."), "schema": input.schema.json(&schemas),
        ]
    }

    private static func tags(_ name: String, _ help: String) -> JSONValue {
        [
            "name": .string(name), "in": "header", "required": false, "description": .string(help),
            "schema": ["type": "string", "pattern": .string(EntityTags.pattern)],
        ]
    }

    private static let idempotencyKey: JSONValue = [
        "name": "Idempotency-Key", "in": "header", "required": false, "description": "Makes a repetition harmless.",
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
            let unchanged: JSONValue = ["description": "It is still what If-None-Match names.", "headers": ["ETag": Self.eTag]]
            return [whole, .init(name: "304", value: unchanged)]
        }
        // 206 answers a Range (RFC 9110 §15.3.7).
        return route.isDownload ? [whole, .init(name: "206", value: whole.value)] : [whole]
    }

    private static func success(_ route: APIRoute, _ schemas: inout [String: JSONValue]) -> JSONValue.Member {
        var content: [JSONValue.Member] = []
        for (type, schema) in route.success.content {
            let body = schema.map { ["schema": $0.json(&schemas)] as JSONValue } ?? .object([])
            content.append(.init(name: type, value: body))
        }
        var response: [JSONValue.Member] = [.init(name: "description", value: .string(route.summary))]
        var headers: [JSONValue.Member] = []
        if route.success.location != nil {
            headers.append(.init(name: "Location", value: ["description": "The path of what was made.", "schema": ["type": "string"]]))
        }
        if route.isVersioned { headers.append(.init(name: "ETag", value: Self.eTag)) }
        if !headers.isEmpty { response.append(.init(name: "headers", value: .object(headers))) }
        response.append(.init(name: "content", value: .object(content)))
        return .init(name: String(route.success.status.code), value: .object(response))
    }

    private static let eTag: JSONValue = [
        "description": "For If-Match and If-None-Match.", "schema": ["type": "string"],
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
