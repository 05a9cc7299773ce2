import HTTPServer
import HTTPTypes
package import Rooms
import Support

// Maps the room registry's refusals to API errors. All translation of them is here.

extension APIError {
    /// The answer to a call that failed with this error.
    package init(any error: any Error) {
        switch error {
        case let error as APIError: self = error
        case let error as RegistryError: self.init(error)
        case let error as FieldError: self.init(error)
        default: self.init(.internalServerError, .internal, "The server failed to carry out the call; its log has the details.")
        }
    }

    package init(_ error: RegistryError) {
        switch error {
        case .invalid(let field): self.init(field)
        case .noSuchRoom(let id): self = .notFound("room", id, field: "roomId")
        case .noSuchMember(let user): self = .notFound("member", user, field: "userId")
        case .keptOut(let user, let room, let forMs):
            let seconds = max(1, (forMs + 999) / 1_000)
            self.init(.conflict, .conflict, "User \(user) was kicked from room \(room) and may come back in \(seconds) s.")
            self.field = "userId"
            self.value = user
            self.headers[.retryAfter] = "\(seconds)"
        case .notForbidden(let path):
            self = .wrongState("The stream \(path) is not forbidden.", state: "not forbidden", allowed: ["forbid"])
        case .wrongState(let id, let state, let action, let allowed):
            let words = allowed.map(\.rawValue)
            self = .wrongState(
                "Room \(id) is \(state.rawValue); \(action) is possible when it is \(words.joined(separator: ", ")).",
                state: state.rawValue,
                allowed: words)
        case .versionChanged(let id, let version):
            self = .versionMismatch("If-Match does not name the present version of room \(id).", expected: "\"\(version)\"")
        case .versionExcluded(let id, let version):
            self = .versionMismatch(
                "Room \(id) exists, with a version that If-None-Match excludes.",
                expected: "a version other than \"\(version)\"",
                field: "If-None-Match")
        case .idTaken(let id, let state, let freeAt):
            let when = freeAt.map { "; the id is free from \(Instant.text($0))" } ?? ""
            self.init(.conflict, .conflict, "Room \(id) exists already and is \(state.rawValue)\(when).")
            self.field = "roomId"
            self.value = id.rawValue
            self.state = state.rawValue
        case .deviceTaken(let device, let room):
            self.init(.conflict, .conflict, "Device \(device) already has an open room: \(room).")
            self.field = "deviceUid"
            self.value = device
            self.roomID = room.rawValue
        case .nameTaken(let path, let room, let field):
            self.init(.conflict, .conflict, "The name \(path) already stands for a stream of room \(room).")
            self.field = field
            self.value = path.name
            self.roomID = room.rawValue
        case .keyReused(let key):
            self.init(.unprocessableContent, .conflict, "This Idempotency-Key was used for another request.")
            self.field = "Idempotency-Key"
            self.value = key
            self.rule = "expected a new key for each request"
        case .keyBusy(let key):
            self.init(.conflict, .conflict, "A request with this Idempotency-Key is still running; repeat it later to get its answer.")
            self.field = "Idempotency-Key"
            self.value = key
            self.rule = "in_progress"
            self.headers[.retryAfter] = "1"
        case .keyOutcomeUnknown(let key):
            self.init(
                .conflict, .conflict,
                "An earlier version of the server carried out the request with this Idempotency-Key and did not store its answer.")
            self.field = "Idempotency-Key"
            self.value = key
            self.rule = "outcome_unknown"
        case .diskFull(let free, let least):
            self.init(
                .init(code: 507), .unavailable,
                "The server's disk has \(free) bytes left, but at least \(least) must stay free (data.minFree); nothing was created.")
            self.rule = "disk_full"
        case .storeFailed:
            // The store's own message goes to the log only.
            self = .unavailable("The server cannot read or write its store now; nothing was changed.")
        case .storeGone:
            self = .unavailable("The server's data directory was deleted or replaced while the server was running; nothing was changed.")
        case .onOtherNode(let what, let node): self = .unavailable("\(what) is on the node \(node); call that one.")
        case .tooMany("waiting calls", _):
            self = .unavailable("Too many calls are waiting for the server's store; nothing was changed.")
        case .tooMany(let what, let limit):
            self.init(.conflict, .conflict, "Too many \(what): the limit is \(limit).")
            self.rule = "at most \(limit) \(what)"
        }
    }
}

extension APIError {
    /// The schema of ``body(requestID:)``.
    package static let schema = Schema.named(
        "Error",
        .object([
            .init(
                name: "code", schema: .keywords("integer", ("minimum", 400), ("maximum", 599)), help: "The HTTP status.", isRequired: true),
            .init(name: "message", schema: .keywords("string"), help: "The error in words, for people.", isRequired: true),
            .init(name: "requestId", schema: .keywords("string"), help: "The request's id, as in X-Request-Id.", isRequired: true),
            .init(
                name: "error",
                schema: .object([
                    .init(
                        name: "type", schema: .words(Kind.allCases.map(\.rawValue)), help: "The class of the error, for programs.",
                        isRequired: true),
                    .init(name: "field", schema: .keywords("string"), help: "The field, parameter or header at fault.", isRequired: false),
                    .init(name: "value", schema: .keywords("string"), help: "Its value, shortened.", isRequired: false),
                    .init(name: "rule", schema: .keywords("string"), help: "The rule that was broken.", isRequired: false),
                    .init(name: "state", schema: .keywords("string"), help: "The state that does not allow the call.", isRequired: false),
                    .init(
                        name: "roomId", schema: .keywords("string"), help: "The room that has the device or name already.",
                        isRequired: false),
                    .init(
                        name: "allowed", schema: .list(.keywords("string")),
                        help: "The states that allow the call, or the methods that the path supports.", isRequired: false),
                ]), help: "", isRequired: true),
        ]))
}
