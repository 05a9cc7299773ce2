package import HTTPServer
package import HTTPTypes

/// Logins of browsers, which take the place of a token in the Authorization header. Any thread.
package protocol BrowserSessions: Sendable {
    /// The id of the API token that the request's login stands for; nil when it has none. Throws 401 when the login is over, 403 when the
    /// request does not come from the console's own page.
    func tokenID(of request: HTTPRequest) throws(APIError) -> Int64?
}
