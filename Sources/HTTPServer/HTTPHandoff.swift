import HTTPTypes
import Listening
package import NIOCore
package import NIOHTTP1
import NIOHTTPTypesHTTP1
package import Support

/// Takes connections over from HTTP by request path: WebSockets, and media sent for as long as somebody watches. The server offers it every request
/// of a connection before the router.
package protocol HTTPHandoff: Sendable {
    /// The door that the request comes to, well-formed or not; nil when it is for others. On the connection's loop.
    func door(_ head: HTTPRequestHead) -> Door?
    /// The route of a claimed request, for the figures: one of few patterns, such as "/{app}/{stream}.flv".
    func route(_ head: HTTPRequestHead) -> String
    /// Decides before anything has been answered. On no particular thread.
    func decide(_ request: HTTPHandoffRequest) async -> HTTPHandoffDecision
}

package struct HTTPHandoffRequest: Sendable {
    package let head: HTTPRequestHead
    /// The request's channel; over HTTP/2, a stream of its connection.
    package let channel: any Channel
    /// Whether the connection uses TLS.
    package let isSecure: Bool
    /// Where what the client makes the server hold is charged, once the handoff has the connection.
    package let account: HTTPHoldings.Account

    /// Whether the request is an HTTP/2 stream and shares its connection with others.
    package var isMultiplexed: Bool { self.head.version.major >= 2 }
}

package enum HTTPHandoffDecision: Sendable {
    /// Sends this head, then replaces HTTP's handlers with these. They are made on the connection's loop, get `handlerAdded` once the head
    /// has been written, and read and write ByteBuffers from then on. If the connection has closed already, none are made.
    ///
    /// The head and a chunked body are HTTP/1.1 whatever the client speaks, because all viewers of a stream get the same bytes.
    /// ``HTTP2BodyWriter`` removes the chunk framing.
    case accept(HTTPResponseHead, handlers: @Sendable () -> [any ChannelHandler])
    /// Sends an ordinary answer and closes the connection.
    case refuse(APIError)
}

/// A complete answer sent without the router.
struct HTTPPlainAnswer: Sendable, Equatable {
    let head: HTTPResponseHead
    /// Nil in an answer to HEAD.
    let body: String?

    /// An error in the usual format of the API; the connection closes after it.
    init(_ error: APIError, toHead isHead: Bool = false) {
        let requestID = SecretText.hex((0..<8).map { _ in UInt8.random(in: 0...255) })
        let body = error.body(requestID: requestID).text
        self.body = isHead ? nil : body
        var headers = HTTPHeaders(error.headers)
        headers.add(name: "content-type", value: "application/json")
        headers.add(name: "content-length", value: String(body.utf8.count))
        headers.add(name: "cache-control", value: "no-store")
        headers.add(name: "x-request-id", value: requestID)
        headers.add(name: "connection", value: "close")
        headers.add(name: "server", value: "earshot")
        self.head = HTTPResponseHead(version: .http1_1, status: .init(statusCode: error.status.code), headers: headers)
    }
}

extension HTTPResponseHead {
    /// Whether a list header contains this lower-case word, ignoring case.
    package func list(_ name: String, contains word: String) -> Bool {
        self.headers[canonicalForm: name].contains { $0.lowercased() == word }
    }
}

extension HTTPRequestHead {
    /// The target up to its query or fragment.
    package var path: Substring { Substring(self.uri.utf8.prefix { $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") }) }

    /// The part after the "?"; nil without one.
    package var query: Substring? {
        let rest = self.uri.utf8.drop { $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") }
        guard rest.first == UInt8(ascii: "?") else { return nil }
        return Substring(rest.dropFirst().prefix { $0 != UInt8(ascii: "#") })
    }

    /// Whether a list header contains this lower-case word, ignoring case.
    package func list(_ name: String, contains word: String) -> Bool {
        self.headers[canonicalForm: name].contains { $0.lowercased() == word }
    }
}

extension ClientAddresses {
    /// The client address of a request; nil if unknown.
    package func client(of request: HTTPHandoffRequest) -> SocketAddress? {
        self.client(peer: self.peer(of: request.channel), forwarded: request.head.headers["x-forwarded-for"])
    }
}
