import HTTPServer
import HTTPTypes
import NIOCore
import RTMP
import Rooms
import Support

/// One call of the API. A single declaration serves, checks and documents it.
struct APIRoute: Sendable {
    let method: HTTPRequest.Method
    /// "/rooms/{roomId}/close", under `/api/v1`.
    let path: String
    /// The operationId: "closeRoom".
    let name: String
    /// The first sentence is the document's summary, the rest its description.
    let summary: String
    let tag: APITag
    /// The least role that may call; nil when an allowed address is enough.
    let role: TokenRole?
    let pathForm: Form
    let query: Form
    /// Nil when the call has no body at all.
    let body: Form?
    let success: APISuccess
    /// Failures besides those that every call can have.
    let failures: Set<APIFailure>
    let effect: APIEffect
    let handle: @Sendable (APICall) async throws -> APIReply

    /// The path's parts: literal, or the name of a parameter.
    let parts: [Part]

    /// The answer is a file, and supports Range.
    var isDownload = false
    /// The call changes a room, provided that the room matches If-Match and If-None-Match.
    var isConditional = false
    /// The answer's `data` has a version, from which the ETag is made.
    var isVersioned = false

    enum Part: Sendable, Equatable {
        case literal(String)
        case parameter(String)
    }
}

/// The place of a call's effect. It decides what a repetition with the same Idempotency-Key does after a crash.
enum APIEffect: Sendable {
    /// No effect: a repetition simply runs again.
    case nothing
    /// In the store, in one transaction with the answer.
    case stored
    /// On connections or the floor, which end with the process. The answer is stored after the effect.
    case live
}

/// A group of calls in the document.
enum APITag: String, Sendable, CaseIterable {
    case rooms, members, urls, streams, sessions, events, callbacks, relays, recordings, talk, tokens, server
    case stats, gatherings
}

/// The failures of calls, by HTTP status.
enum APIFailure: Int, Sendable, CaseIterable {
    case invalid = 400
    case unauthorized = 401
    case forbidden = 403
    case notFound = 404
    case tooSlow = 408
    case conflict = 409
    case versionMismatch = 412
    case tooLarge = 413
    case notJSON = 415
    case noSuchRange = 416
    case keyReused = 422
    case rateLimited = 429
    case unavailable = 503
    case diskFull = 507

    var help: String {
        switch self {
        case .invalid: "A field, parameter or header breaks a rule; the error names it."
        case .unauthorized: "The token is missing, unknown or revoked."
        case .forbidden: "The token's role is too low, or the address may not call the API."
        case .notFound: "The call names something that does not exist."
        case .tooSlow: "The body arrived too slowly (the server's setting limits.httpBody)."
        case .conflict:
            """
            The state does not allow the call (the error lists the states that do), something is taken or at its limit, or the first \
            request with this Idempotency-Key is still running.
            """
        case .versionMismatch: "If-Match does not list the room's version, or If-None-Match does: look the room up again."
        case .tooLarge: "The body is larger than 64 KiB."
        case .notJSON: "The Content-Type is not application/json."
        case .noSuchRange: "The Range begins after the end of the file."
        case .keyReused: "The Idempotency-Key was used for another request."
        case .rateLimited: "Too many calls with this token, or too many calls without a valid token from this address."
        case .unavailable: "The server cannot carry out the call now; nothing was changed. Repeat it after Retry-After."
        case .diskFull: "The server's disk has less free space than the setting data.minFree; nothing was created."
        }
    }
}

/// A call's successful answer.
struct APISuccess: Sendable {
    let status: HTTPResponse.Status
    /// Schemas by media type; nil for anything but JSON.
    let content: [(type: String, schema: Schema?)]
    /// The `Location` of a new object: this path under `/api/v1`, completed by this member of `data`.
    var location: (path: String, member: String)?
    /// A member of `data` that is shown once: a repeated answer has null there.
    var secret: String?
}

/// A handler's result, before it becomes an answer.
enum APIReply: Sendable {
    /// Data for the envelope.
    case data(JSONValue)
    /// A body of another type, sent unchanged.
    case raw(type: String, ByteBuffer)
    case file(FileDownload)
}

extension APIRoute {
    /// A call whose answer is JSON in the envelope.
    init<Output>(
        _ method: HTTPRequest.Method, _ path: String, _ name: String, _ tag: APITag, _ role: TokenRole, _ summary: String,
        in pathForm: [AnyInput] = [], query: [AnyInput] = [], body: [AnyInput]? = nil, answers outputType: OutputType<Output>,
        status: HTTPResponse.Status = .ok, location: (path: String, member: String)? = nil, failures: Set<APIFailure> = [],
        secret: String? = nil, effect: APIEffect? = nil, isConditional: Bool = false,
        _ handle: @escaping @Sendable (APICall) async throws -> Output
    ) {
        self.init(
            method: method, path: path, name: name, summary: summary, tag: tag, role: role, pathForm: Form(pathForm), query: Form(query),
            // Every POST may have a body, even if only an empty object.
            body: body.map(Form.init) ?? (method == .post ? .empty : nil),
            success: APISuccess(
                status: status, content: [("application/json", Self.envelope(outputType.schema))], location: location, secret: secret),
            failures: failures, effect: effect ?? (method == .post ? .live : .nothing),
            handle: { .data(outputType.write(try await handle($0))) }, parts: Self.parts(path), isConditional: isConditional,
            isVersioned: outputType.schema.hasProperty("version"))
    }

    /// A POST whose effect is in the store. Its handler stores the answer there too.
    init<Output: Sendable>(
        storing path: String, _ name: String, _ tag: APITag, _ role: TokenRole, _ summary: String,
        in pathForm: [AnyInput] = [], body: [AnyInput] = [], answers outputType: OutputType<Output>,
        status: HTTPResponse.Status = .ok, location: (path: String, member: String)? = nil, failures: Set<APIFailure> = [],
        secret: String? = nil, isConditional: Bool = false,
        _ handle: @escaping @Sendable (APICall, AnswerKeeper<Output>) async throws -> Output
    ) {
        self.init(
            .post, path, name, tag, role, summary, in: pathForm, body: body, answers: outputType, status: status, location: location,
            failures: failures, secret: secret, effect: .stored, isConditional: isConditional
        ) { call in
            try await handle(call, AnswerKeeper(keyed: call.keyed, outputType: outputType))
        }
    }

    /// A call whose answer is not JSON in the envelope.
    init(
        raw method: HTTPRequest.Method, _ path: String, _ name: String, _ tag: APITag, _ role: TokenRole?, _ summary: String,
        in pathForm: [AnyInput] = [], query: [AnyInput] = [], type: String, schema: Schema? = nil, failures: Set<APIFailure> = [],
        _ handle: @escaping @Sendable (APICall) async throws -> ByteBuffer
    ) {
        self.init(
            method: method, path: path, name: name, summary: summary, tag: tag, role: role, pathForm: Form(pathForm), query: Form(query),
            body: nil, success: APISuccess(status: .ok, content: [(type, schema)]), failures: failures, effect: .nothing,
            handle: { .raw(type: type, try await handle($0)) }, parts: Self.parts(path))
    }

    /// A call whose answer is a file.
    init(
        file path: String, _ name: String, _ tag: APITag, _ role: TokenRole, _ summary: String, in pathForm: [AnyInput], type: String,
        failures: Set<APIFailure> = [], _ handle: @escaping @Sendable (APICall) async throws -> FileDownload
    ) {
        self.init(
            method: .get, path: path, name: name, summary: summary, tag: tag, role: role, pathForm: Form(pathForm), query: .empty,
            body: nil,
            success: APISuccess(status: .ok, content: [(type, nil)]), failures: failures.union([.noSuchRange]), effect: .nothing,
            handle: { .file(try await handle($0)) }, parts: Self.parts(path), isDownload: true)
    }

    /// A call whose answer is JSON in the envelope, or comma-separated values.
    init(
        tablePath path: String, _ name: String, _ tag: APITag, _ role: TokenRole, _ summary: String, _ pathForm: [AnyInput],
        _ query: [AnyInput], _ schema: Schema, _ failures: Set<APIFailure>,
        _ handle: @escaping @Sendable (APICall) async throws -> APIReply
    ) {
        self.init(
            method: .get, path: path, name: name, summary: summary, tag: tag, role: role, pathForm: Form(pathForm), query: Form(query),
            body: nil,
            success: APISuccess(status: .ok, content: [("application/json", Self.envelope(schema)), (CSV.mediaType, nil)]),
            failures: failures, effect: .nothing, handle: handle, parts: Self.parts(path))
    }

    private static func parts(_ path: String) -> [Part] {
        path.split(separator: "/").map { $0.hasPrefix("{") ? .parameter(String($0.dropFirst().dropLast())) : .literal(String($0)) }
    }

    private static func envelope(_ data: Schema) -> Schema {
        .object([
            .init(name: "code", schema: .keywords("integer", ("const", 0)), help: "0 for success.", isRequired: true),
            .init(name: "message", schema: .keywords("string", ("const", "")), help: "", isRequired: true),
            .init(name: "requestId", schema: .keywords("string"), help: "The request's id, as in X-Request-Id.", isRequired: true),
            .init(name: "data", schema: data, help: "", isRequired: true),
        ])
    }

    static func envelope(_ data: JSONValue, requestID: String) -> JSONValue {
        ["code": 0, "message": "", "requestId": .string(requestID), "data": data]
    }

    /// All failures that this call can have.
    var allFailures: [APIFailure] {
        var all = self.failures.union([.invalid, .forbidden, .rateLimited, .tooLarge])
        if self.role != nil { all.formUnion([.unauthorized, .unavailable]) }
        if !self.pathForm.inputs.isEmpty { all.insert(.notFound) }
        if self.body != nil { all.formUnion([.notJSON, .tooSlow]) }
        if self.method == .post { all.formUnion([.conflict, .keyReused]) }
        if self.isConditional || (self.isVersioned && self.method == .get) { all.insert(.versionMismatch) }
        return all.sorted { $0.rawValue < $1.rawValue }
    }
}
