import NIOCore
import NIOHTTP1

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
    let remote: SocketAddress?
}

enum HTTPTakeoverDecision: Sendable {
    /// Send this head, then put the handlers in HTTP's place. They are made on the connection's loop, get `handlerAdded` when the head
    /// has been written, and deal in ByteBuffers from there on. When the connection is gone already, none are made.
    case take(HTTPResponseHead, handlers: @Sendable () -> [any ChannelHandler])
    /// An ordinary answer; the connection closes after it.
    case answer(HTTPPlainAnswer)
}

/// A whole answer outside the router.
struct HTTPPlainAnswer: Sendable, Equatable {
    var status: HTTPResponseStatus
    /// Besides content type and length.
    var headers = HTTPHeaders()
    var contentType = "application/json; charset=utf-8"
    var body = ""

    /// An error in the form that the API's errors have.
    static func error(_ status: HTTPResponseStatus, _ type: String, _ message: String, field: String? = nil, value: String? = nil) -> Self {
        var error = #"{"type":\#(JSONText.quoted(type))"#
        if let field { error += #","field":\#(JSONText.quoted(field))"# }
        if let value { error += #","value":\#(JSONText.quoted(value))"# }
        if field != nil { error += #","rule":\#(JSONText.quoted(message))"# }
        error += "}"
        let requestID = JSONText.hex((0..<8).map { _ in UInt8.random(in: 0...255) })
        return Self(
            status: status,
            body: #"{"code":\#(status.code),"message":\#(JSONText.quoted(message)),"requestId":"\#(requestID)","error":\#(error)}"#)
    }

    /// The head, for a connection that closes after it.
    var head: HTTPResponseHead {
        var headers = self.headers
        headers.replaceOrAdd(name: "content-type", value: self.contentType)
        headers.replaceOrAdd(name: "content-length", value: String(self.body.utf8.count))
        headers.replaceOrAdd(name: "connection", value: "close")
        return HTTPResponseHead(version: .http1_1, status: self.status, headers: headers)
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
