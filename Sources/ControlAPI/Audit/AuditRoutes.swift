import HTTPAPI
import HTTPServer
import HTTPTypes
import RoomRegistry
import Rooms
import Support

enum AuditRoutes {
    private static let token = Input(
        "token", .soughtName(length: 1...RoomLimits.tokenNameLength), "Only calls with the token of this name.")
    private static let via = Input("via", .choice(of: AuditTool.known), "Only calls by this tool.")
    private static let operation = Input(
        "operation", .sought(length: 1...64), "Only this operation: an operationId of this document.")
    private static let room = Input("roomId", .id, "Only calls on this room.")
    private static let stream = Input(
        "stream", .soughtName(length: 1...2 * RoomLimits.streamNameLength + 1), "Only calls that name this stream, app/name.")
    private static let result = Input("result", .words(AuditLine.results), "Only this result: ok or an error's type.")
    private static let from = Input("from", .instant, "Only calls at this time or later.")
    private static let to = Input("to", .instant, "Only calls before this time.")
    private static let before = Input("before", .whole(1...Int64.max), "Only lines with smaller ids: the `next` of the previous page.")
    private static let limit = Input("limit", .whole(1...10_000), "The maximum number of lines.", fallback: 100)

    /// The audit trail.
    static let all: [ControlRoute] = [
        ControlRoute(
            table: "/audit", "listAudit", .server, .admin, .server,
            "List who changed what, newest first. Heartbeats, likes and reads leave no line.",
            query: [
                Self.token, Self.via, Self.operation, Self.room, Self.stream, Self.result, Self.from, Self.to, Self.before, Self.limit,
            ],
            answers: AuditListAnswer.outputType
        ) { call in
            let query = try Self.auditQuery(call)
            let list = try await call.rooms.audit(query)
            return AuditListAnswer(next: list.count == query.limit ? list.last?.id : nil, list: list)
        }
    ]

    private static func auditQuery(_ call: APICall) throws -> AuditQuery {
        var query = AuditQuery()
        query.token = call[Self.token]
        query.via = call[Self.via]
        query.operation = call[Self.operation]
        query.room = call[Self.room]
        query.stream = call[Self.stream]
        query.result = call[Self.result]
        query.fromMs = call[Self.from]
        query.toMs = call[Self.to]
        query.before = call[Self.before]
        query.limit = Int(try call.value(Self.limit))
        return query
    }
}

extension AuditTool {
    /// All tools, in the document's order. A line may hold a tool of a later version.
    static let known: [AuditTool] = [.api, .cli, .console, .tencent]
}

extension AuditLine {
    fileprivate static let results = [Self.ok] + APIError.Kind.allCases.map(\.rawValue)
}

extension InputType<String> {
    /// One of these values.
    fileprivate static func words(_ words: [String]) -> InputType {
        InputType(.words(words)) { (json: JSONValue) throws(BrokenRule) in
            guard case .string(let text) = json, words.contains(text) else {
                throw BrokenRule("expected one of \(words.joined(separator: ", "))")
            }
            return text
        }
    }
}

struct AuditListAnswer: Sendable {
    let next: Int64?
    let list: [AuditEntry]

    static let outputType = OutputType<AuditListAnswer>.object(
        "AuditList",
        [
            .field("next", .nullable(.count), "Pass it as `before` to get the next page; null at the end.", \.next),
            .field("list", .list(AuditEntry.outputType), "The lines.", \.list),
        ])
}

extension AuditEntry {
    static let fields: [Field<AuditEntry>] = [
        .field("auditId", .count, "The line's number.", \.id),
        .field("at", .instant, "When the call was carried out or refused.", \.at),
        .field("tokenId", .nullable(.count), "The id of the caller's token, if it is known.", \.line.tokenID),
        .field("token", .nullable(.text), "The token's name, if it is known; cli for `earshot token` in the data directory.", \.line.token),
        .field("tokenHash", .nullable(.text), "The beginning of the SHA-256 of a secret that no token has.", \.line.tokenHash),
        .field("address", .text, "The caller's address; empty for the command line in the data directory.", \.line.address),
        .field(
            "via", .nullable(.choice(of: AuditTool.known)),
            "The tool: the API, the command earshot (by its User-Agent), the console, the Tencent API; null in lines of former versions."
        ) { $0.line.via.flatMap { AuditTool.known.contains($0) ? $0 : nil } },
        .field("requestId", .text, "The request's id, as in X-Request-Id.", \.line.requestID),
        .field("operation", .text, "The operationId.", \.line.operation),
        .field("roomId", .nullable(.text), "The room acted on.", \.line.roomID),
        .field("stream", .nullable(.text), "The stream acted on, app/name.", \.line.stream),
        .field("object", .nullable(.text), "Another thing acted on, such as token/7 or session/42.", \.line.object),
        .field("result", .words(AuditLine.results), "ok, or the error's type.", \.line.result),
        .field("status", .whole(0...599), "The HTTP status; 0 without a request.", \.line.status),
        .field("before", .nullable(.jsonObject), "The changed fields' former values.", \.line.before),
        .field("after", .nullable(.jsonObject), "The changed fields' new values.", \.line.after),
    ]
    static let outputType = OutputType<AuditEntry>.object("AuditLine", Self.fields)
}
