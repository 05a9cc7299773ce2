import HTTPTypes
import NIOCore
import NIOHTTP1
import NIOHTTPTypesHTTP1

/// Something that takes connections out of HTTP by the request for its path: WebSockets, and media that is sent for as long as somebody
/// looks. Asked before the router; every request of a connection may be the one.
protocol HTTPTakeover: Sendable {
    /// Whether this request is this takeover's to answer, well-formed or not. On the connection's loop.
    func claims(_ head: HTTPRequestHead) -> Bool
    /// Decides; nothing has been answered yet. On no particular thread.
    func decide(_ request: HTTPTakeoverRequest) async -> HTTPTakeoverDecision
}

struct HTTPTakeoverRequest: Sendable {
    let head: HTTPRequestHead
    /// The request's: over HTTP/2 a stream of its connection.
    let channel: any Channel
    /// Over TLS.
    let isSecure: Bool

    /// Over HTTP/2: the request has a stream of its own, and the connection has others.
    var isMultiplexed: Bool { self.head.version.major >= 2 }
}

enum HTTPTakeoverDecision: Sendable {
    /// Send this head, then put the handlers in HTTP's place. They are made on the connection's loop, get `handlerAdded` when the head
    /// has been written, and deal in ByteBuffers from there on. When the connection is gone already, none are made.
    ///
    /// The head is HTTP/1.1's, and so is the body if it is sent in chunks, whatever the client speaks: all viewers of a stream are sent
    /// the same bytes, and ``HTTP2BodyWriter`` takes the chunks' framing off.
    case take(HTTPResponseHead, handlers: @Sendable () -> [any ChannelHandler])
    /// An ordinary answer, after which the connection closes.
    case refuse(APIError)
}

/// A whole answer outside the router.
struct HTTPPlainAnswer: Sendable, Equatable {
    let head: HTTPResponseHead
    let body: String

    /// An error in the form that all of the API's errors have, for a connection that closes after it.
    init(_ error: APIError) {
        let requestID = SecretText.hex((0..<8).map { _ in UInt8.random(in: 0...255) })
        self.body = error.body(requestID: requestID).text
        var headers = HTTPHeaders(error.headers)
        headers.add(name: "content-type", value: "application/json")
        headers.add(name: "content-length", value: String(self.body.utf8.count))
        headers.add(name: "cache-control", value: "no-store")
        headers.add(name: "x-request-id", value: requestID)
        headers.add(name: "connection", value: "close")
        headers.add(name: "server", value: "earshot")
        self.head = HTTPResponseHead(version: .http1_1, status: .init(statusCode: error.status.code), headers: headers)
    }
}

extension HTTPResponseHead {
    /// Whether a header that is a list holds this word, in any case.
    func list(_ name: String, contains word: String) -> Bool {
        self.headers[canonicalForm: name].contains { $0.lowercased() == word }
    }
}

extension HTTPRequestHead {
    /// Up to the query.
    var path: Substring { self.uri.prefix { $0 != "?" && $0 != "#" } }

    /// After the "?"; nil without one.
    var query: Substring? {
        let rest = self.uri.dropFirst(self.path.count)
        guard rest.first == "?" else { return nil }
        return rest.dropFirst().prefix { $0 != "#" }
    }

    /// Whether a header that is a list holds this word, in any case.
    func list(_ name: String, contains word: String) -> Bool {
        self.headers[canonicalForm: name].contains { $0.lowercased() == word }
    }
}
