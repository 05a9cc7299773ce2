package import HTTPServer
package import HTTPTypes

/// Logins of browsers, which replace a token in the Authorization header. Any thread.
package protocol BrowserSessions: Sendable {
    /// The id of the API token of the request's login; nil when the request has no login. Throws 401 when the login is over, 403 when the request
    /// does not come from the console's own page.
    func tokenID(of request: HTTPRequest) throws(APIError) -> Int64?
}
