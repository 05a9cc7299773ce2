import HTTPTypes
import NIOCore
import NIOHTTP1

/// Judging a request by its head, before anybody reads its body.
extension HTTPConnectionHandler {
    private static let healthChecks: Set<String> = ["/healthz", "/readyz"]

    /// Whether the path, with or without a query, is one that is answered however full the server is.
    static func isHealthCheck(_ path: String) -> Bool { Self.healthChecks.contains(String(path.prefix { $0 != "?" && $0 != "#" })) }

    /// Why the request is refused by its head alone; nil: it is not.
    static func refusal(of head: HTTPRequestHead, _ refusal: HTTPPlaceTable.Refusal?) -> APIError? {
        if let refusal, !Self.isHealthCheck(head.uri) { return refusal.error }
        guard !head.isOld else { return nil }
        // RFC 9112 §3.2
        switch head.headers["host"].count {
        case 1: return nil
        case 0: return Self.badHost("A request of HTTP/1.1 needs a Host header; this one has none.")
        default: return Self.badHost("A request has one Host header; this one has more.")
        }
    }

    private static func badHost(_ message: String) -> APIError {
        var error = APIError(.badRequest, .invalid, message)
        error.field = "Host"
        error.rule = "expected exactly one"
        return error
    }
}

extension HTTPRequestHead {
    /// Of HTTP/1.0, or of what was before it.
    var isOld: Bool { self.version.major < 1 || (self.version.major == 1 && self.version.minor == 0) }
}

/// The outbound event by which the maker of an answer says that it reads the request's body: whoever waits for 100 (Continue) gets it now.
struct HTTPBodyWanted: Sendable {}
