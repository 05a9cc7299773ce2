package import Hummingbird
package import Support

/// A part of the HTTP port that answers ordinary requests. The router offers it each request in turn. Any thread.
package protocol HTTPPart: Sendable {
    /// The door that the request comes to; nil when it is for another part.
    func door(_ request: Request) -> Door?
    /// Answers a request of its door.
    func respond(to request: Request, _ context: APIContext) async -> Response
}
