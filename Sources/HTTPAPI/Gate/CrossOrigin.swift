import HTTPServer
import HTTPTypes

/// Lets only pages of the origins in the settings call the API (Fetch §3.2). A value.
///
/// A token is in a header that the page sets, never in a cookie. Browser credentials are not allowed, so no answer becomes readable
/// because of the browser's user.
struct CrossOrigin: Sendable {
    private let origins: Set<String>

    init(_ origins: [String]) { self.origins = Set(origins) }

    private static let requestHeaders =
        "Authorization, Content-Type, Accept, Idempotency-Key, If-Match, If-None-Match, If-Range, Range, X-Request-Id"
    private static let readableHeaders =
        "Content-Disposition, Content-Range, ETag, Idempotency-Replayed, Location, RateLimit-Limit, RateLimit-Policy, RateLimit-Remaining, "
        + "RateLimit-Reset, Retry-After, X-Request-Id"
    /// Seconds for which a browser may cache a preflight.
    private static let maxAge = "600"

    /// The request's origin, if the settings name it.
    private func named(_ headers: HTTPFields) -> String? {
        guard headers[values: .origin].count == 1, let origin = headers[.origin], self.origins.contains(origin.lowercased()) else {
            return nil
        }
        return origin
    }

    /// The CORS headers of every answer.
    func headers(_ request: HTTPFields) -> HTTPFields {
        guard !self.origins.isEmpty else { return [:] }
        var headers: HTTPFields = [.vary: "Origin"]
        guard let origin = self.named(request) else { return headers }
        headers[.accessControlAllowOrigin] = origin
        headers[.accessControlExposeHeaders] = Self.readableHeaders
        return headers
    }

    /// Whether this is a CORS preflight; always false when the settings name no origin.
    func isPreflight(_ request: HTTPRequest) -> Bool {
        !self.origins.isEmpty && request.method == .options && request.headerFields[.origin] != nil
            && request.headerFields[.accessControlRequestMethod] != nil
    }

    /// The headers that answer a preflight for a path with these methods. Throws 403 for other origins.
    func preflight(_ request: HTTPFields, methods: [HTTPRequest.Method]) throws(APIError) -> HTTPFields {
        guard self.named(request) != nil else {
            throw APIError(
                .forbidden, .forbidden,
                "Pages of this origin may not call the API; the server's setting api.allowOrigins lists the origins that may.")
        }
        return [
            .accessControlAllowMethods: methods.map(\.rawValue).joined(separator: ", "),
            .accessControlAllowHeaders: Self.requestHeaders, .accessControlMaxAge: Self.maxAge,
        ]
    }
}
