package import HTTPServer
package import HTTPTypes
package import NIOCore
package import Rooms
package import Support

/// One call of the API. A single declaration serves, checks and documents it.
///
/// The console's words for its line in the audit stand in `Console/Assets/codes.js`.
package struct APIRoute: Sendable {
    package let method: HTTPRequest.Method
    /// "/rooms/{roomId}/close", under `/api/v1`.
    package let path: String
    /// The operationId: "closeRoom".
    package let name: String
    /// The first sentence is the document's summary, the rest its description.
    package let summary: String
    package let tag: APITag
    /// The least role that may call; nil when an allowed address is enough.
    package let role: TokenRole?
    package let pathForm: Form
    package let query: Form
    /// Nil when the call has no body at all.
    package let body: Form?
    package let success: APISuccess
    /// Failures besides those that every call can have.
    package let failures: Set<APIFailure>
    package let effect: APIEffect
    /// Which objects it may concern when its token has limits.
    package let reach: TokenReach
    /// What it is about, where only one node has that.
    package let home: RouteHome?
    /// Whether it leaves a line in the audit trail.
    package let isAudited: Bool

    /// The path's parts: literal, or the name of a parameter.
    package let parts: [Part]

    /// The answer is a file, and supports Range. A signed link (``FileLinks``) opens it in place of a token.
    package let isDownload: Bool
    /// The call changes a room, provided that the room matches If-Match and If-None-Match.
    package let isConditional: Bool
    /// The answer's `data` has a version, from which the ETag is made.
    package let isVersioned: Bool

    package enum Part: Sendable, Equatable {
        case literal(String)
        case parameter(String)
    }
}

/// The place of a call's effect. It decides what a repetition with the same Idempotency-Key does after a crash.
package enum APIEffect: Sendable {
    /// No effect: a repetition simply runs again.
    case nothing
    /// In the store, in one transaction with the answer.
    case stored
    /// On connections or the floor, which end with the process. The answer is stored after the effect.
    case live
}

/// A group of calls in the document.
package enum APITag: String, Sendable, CaseIterable {
    case rooms, members, urls, streams, sessions, events, webhooks, links, recordings, talk, tokens, server
    case stats, gatherings
}

/// The failures of calls, by HTTP status.
package enum APIFailure: Int, Sendable, CaseIterable {
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

    package var help: String {
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
package struct APISuccess: Sendable {
    package let status: HTTPResponse.Status
    /// Schemas by media type; nil for anything but JSON.
    package let content: [(type: String, schema: Schema?)]
    /// The `Location` of a new object: this path under `/api/v1`, completed by this member of `data`.
    package var location: (path: String, member: String)?
    /// A member of `data` that is shown once: a repeated answer has null there.
    package var secret: String?
}

/// A handler's result, before it becomes an answer.
package enum APIReply: Sendable {
    /// Data for the envelope.
    case data(JSONValue)
    /// A body of another type, sent unchanged.
    case raw(type: String, ByteBuffer)
    case file(FileDownload)
}

extension APIRoute {
    /// `isAudited`: nil for what goes without saying, that changes leave a line and reads leave none.
    package init(
        _ method: HTTPRequest.Method, _ path: String, _ name: String, _ tag: APITag, _ role: TokenRole?, _ reach: TokenReach,
        _ summary: String, _ pathForm: [any RequestInput], _ query: [any RequestInput], body: Form? = nil, _ success: APISuccess,
        _ failures: Set<APIFailure>, _ effect: APIEffect, _ home: RouteHome?, _ isAudited: Bool? = nil, isDownload: Bool = false,
        isConditional: Bool = false, isVersioned: Bool = false
    ) {
        self.method = method
        self.path = path
        self.name = name
        self.summary = summary
        self.tag = tag
        self.role = role
        self.pathForm = Form(pathForm)
        self.query = Form(query)
        self.body = body
        self.success = success
        self.failures = failures
        self.effect = effect
        self.reach = reach
        self.home = home
        self.isAudited = isAudited ?? (method != .get)
        self.parts = path.split(separator: "/").map {
            $0.hasPrefix("{") ? .parameter(String($0.dropFirst().dropLast())) : .literal(String($0))
        }
        self.isDownload = isDownload
        self.isConditional = isConditional
        self.isVersioned = isVersioned
    }

    package static func envelope(_ data: Schema) -> Schema {
        .object([
            .init(name: "code", schema: .keywords("integer", ("const", 0)), help: "0 for success.", isRequired: true),
            .init(name: "message", schema: .keywords("string", ("const", "")), help: "", isRequired: true),
            .init(name: "requestId", schema: .keywords("string"), help: "The request's id, as in X-Request-Id.", isRequired: true),
            .init(name: "data", schema: data, help: "", isRequired: true),
        ])
    }

    package static func envelope(_ data: JSONValue, requestID: String) -> JSONValue {
        ["code": 0, "message": "", "requestId": .string(requestID), "data": data]
    }

    /// All failures that this call can have.
    package var allFailures: [APIFailure] {
        var all = self.failures.union([.invalid, .forbidden, .rateLimited, .tooLarge])
        if self.role != nil { all.formUnion([.unauthorized, .unavailable]) }
        if !self.pathForm.inputs.isEmpty { all.insert(.notFound) }
        if self.body != nil { all.formUnion([.notJSON, .tooSlow]) }
        if self.method == .post { all.formUnion([.conflict, .keyReused]) }
        if self.isConditional || (self.isVersioned && self.method == .get) { all.insert(.versionMismatch) }
        return all.sorted { $0.rawValue < $1.rawValue }
    }
}
