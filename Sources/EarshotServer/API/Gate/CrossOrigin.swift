import HTTPTypes

/// Which pages may call the API (Fetch §3.2): those of the origins that the settings name, and no others. A value.
///
/// A token is in a header that the page sets, never in a cookie: credentials of the browser are not asked for, so that no answer is
/// readable because of who sits before it.
struct CrossOrigin: Sendable {
    private let origins: Set<String>

    init(_ origins: [String]) { self.origins = Set(origins) }

    private static let requestHeaders =
        "Authorization, Content-Type, Accept, Idempotency-Key, If-Match, If-None-Match, If-Range, Range, X-Request-Id"
    private static let readableHeaders =
        "Content-Disposition, Content-Range, ETag, Idempotency-Replayed, Location, RateLimit-Limit, RateLimit-Policy, RateLimit-Remaining, "
        + "RateLimit-Reset, Retry-After, X-Request-Id"
    /// Seconds for which a browser need not ask again.
    private static let maxAge = "600"

    /// The origin's own, if the settings name it.
    private func named(_ headers: HTTPFields) -> String? {
        guard headers[values: .origin].count == 1, let origin = headers[.origin], self.origins.contains(origin.lowercased()) else {
            return nil
        }
        return origin
    }

    /// Of every answer.
    func headers(_ request: HTTPFields) -> HTTPFields {
        guard !self.origins.isEmpty else { return [:] }
        var headers: HTTPFields = [.vary: "Origin"]
        guard let origin = self.named(request) else { return headers }
        headers[.accessControlAllowOrigin] = origin
        headers[.accessControlExposeHeaders] = Self.readableHeaders
        return headers
    }

    /// Whether a browser asks what a page may do. Without named origins nobody does.
    func isPreflight(_ request: HTTPRequest) -> Bool {
        !self.origins.isEmpty && request.method == .options && request.headerFields[.origin] != nil
            && request.headerFields[.accessControlRequestMethod] != nil
    }

    /// The answer to a preflight for a path with these methods.
    func preflight(_ request: HTTPFields, methods: [HTTPRequest.Method]) throws(APIError) -> HTTPFields {
        guard self.named(request) != nil else {
            throw APIError(
                .forbidden, .forbidden,
                "Pages of this origin may not call the API; the server's setting api.allowOrigins names those that may.")
        }
        return [
            .accessControlAllowMethods: methods.map(\.rawValue).joined(separator: ", "),
            .accessControlAllowHeaders: Self.requestHeaders, .accessControlMaxAge: Self.maxAge,
        ]
    }
}
