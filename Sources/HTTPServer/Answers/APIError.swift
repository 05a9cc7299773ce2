package import HTTPTypes
package import Support

/// A failed call in full: the only error that the API answers with.
package struct APIError: Error, Sendable {
    /// The class of the error, for programs.
    package enum Kind: String, Sendable, CaseIterable {
        case invalid
        case notFound = "not_found"
        case methodNotAllowed = "method_not_allowed"
        case wrongState = "wrong_state"
        case conflict
        case preconditionFailed = "precondition_failed"
        case unauthorized
        case forbidden
        case rateLimited = "rate_limited"
        case tooLarge = "too_large"
        case unavailable
        case `internal`
    }

    package let status: HTTPResponse.Status
    package let kind: Kind
    /// For people: what was wrong and what is expected. No secret.
    package let message: String
    package var field: String?
    package var value: String?
    package var rule: String?
    package var state: String?
    /// The room that has what the call asked for.
    package var roomID: String?
    package var allowed: [String]?
    package var headers = HTTPFields()

    package init(_ status: HTTPResponse.Status, _ kind: Kind, _ message: String) {
        self.status = status
        self.kind = kind
        self.message = message
    }

    /// The body of the answer.
    package func body(requestID: String) -> JSONValue {
        var details: [JSONValue.Member] = [.init(name: "type", value: .string(self.kind.rawValue))]
        let texts = [
            ("field", self.field), ("value", self.value), ("rule", self.rule), ("state", self.state), ("roomId", self.roomID),
        ]
        for (name, text) in texts {
            if let text { details.append(.init(name: name, value: .string(text))) }
        }
        if let allowed { details.append(.init(name: "allowed", value: .array(allowed.map(JSONValue.string)))) }
        return [
            "code": .integer(Int64(self.status.code)), "message": .string(self.message), "requestId": .string(requestID),
            "error": .object(details),
        ]
    }
}

extension APIError {
    package init(_ error: FieldError) {
        self.init(.badRequest, .invalid, "\(error)")
        self.field = error.field
        self.value = error.value.isEmpty ? nil : error.value
        self.rule = error.rule
    }

    /// 404. `field` is the input that names the missing thing; nil when no input does.
    package static func notFound(_ what: String, _ value: String, field: String? = nil) -> APIError {
        var error = APIError(.notFound, .notFound, "There is no \(what) \"\(value.prefix(80))\".")
        error.field = field
        error.value = String(value.prefix(80))
        return error
    }

    package static func wrongState(_ message: String, state: String, allowed: [String]) -> APIError {
        var error = APIError(.conflict, .wrongState, message)
        error.state = state
        error.allowed = allowed
        return error
    }

    /// 412 (RFC 9110 §15.5.13).
    package static func versionMismatch(_ message: String, expected: String, field: String = "If-Match") -> APIError {
        var error = APIError(.preconditionFailed, .preconditionFailed, message)
        error.field = field
        error.rule = "expected \(expected)"
        return error
    }

    package static func unavailable(_ message: String) -> APIError {
        var error = APIError(.serviceUnavailable, .unavailable, message)
        error.headers[.retryAfter] = "1"
        return error
    }
}
