package import HTTPTypes
package import NIOCore
package import NIOHTTP1
import Support

/// Answers requests on their connection's loop, out of memory: without a task, the router, or a copy of the body. The server offers it every GET
/// without a body before anyone else.
package protocol HTTPLoopPart: Sendable {
    /// Whether the target may be one of its own. A glance: most requests are for others.
    func mayAnswer(_ uri: String) -> Bool
    /// Nil: the router answers, as it does all errors that can be told at once. On the connection's loop.
    func answer(_ request: HTTPLoopRequest) -> HTTPLoopReply?
}

package struct HTTPLoopRequest {
    package let head: HTTPRequestHead
    /// The request's channel; over HTTP/2, a stream of its connection.
    package let channel: any Channel
}

package enum HTTPLoopReply {
    case now(HTTPLoopAnswer)
    /// Comes on the connection's loop. Never fails.
    case later(EventLoopFuture<HTTPLoopAnswer>)
}

/// A whole answer.
package struct HTTPLoopAnswer: Sendable {
    package let status: HTTPResponse.Status
    /// Those of the body; the server adds its own.
    package var fields: [(name: HTTPField.Name, value: String)]
    /// Shared with others who get the same.
    package let body: [ByteBuffer]

    package init(_ status: HTTPResponse.Status, _ fields: [(name: HTTPField.Name, value: String)], body: [ByteBuffer]) {
        self.status = status
        self.fields = fields
        self.body = body
    }

    /// An error in the usual format of the API.
    package init(_ error: APIError) {
        let plain = HTTPPlainAnswer(error)
        self.status = error.status
        self.fields = plain.head.headers.compactMap { field in
            // What ends the connection, and what the server adds.
            guard !["connection", "content-length", "server"].contains(field.name) else { return nil }
            return HTTPField.Name(field.name).map { ($0, field.value) }
        }
        self.body = plain.body.map { [ByteBuffer(string: $0)] } ?? []
    }

    var byteCount: Int { self.body.reduce(0) { $0 + $1.readableBytes } }

    /// The head of HTTP/1.1.
    func head(closes: Bool, _ allocator: ByteBufferAllocator) -> ByteBuffer {
        var head = allocator.buffer(capacity: 512)
        if self.status.code == 200 {
            head.writeStaticString("HTTP/1.1 200 OK")
        } else {
            head.writeString("HTTP/1.1 \(self.status.code) \(self.status.reasonPhrase)")
        }
        for field in self.fields {
            head.writeStaticString("\r\n")
            head.writeString(field.name.rawName)
            head.writeStaticString(": ")
            head.writeString(field.value)
        }
        head.writeStaticString("\r\nContent-Length: ")
        head.writeString(String(self.byteCount))
        head.writeStaticString("\r\nX-Content-Type-Options: nosniff\r\nServer: earshot\r\nDate: ")
        head.writeString(ResponseDates.shared.now)
        if closes { head.writeStaticString("\r\nConnection: close") }
        head.writeStaticString("\r\n\r\n")
        return head
    }

    /// The head of HTTP/2.
    var response: HTTPResponse {
        var response = HTTPResponse(status: self.status)
        // As in the head of HTTP/1.1.
        let own: [(name: HTTPField.Name, value: String)] = [
            (.contentLength, String(self.byteCount)), (.xContentTypeOptions, "nosniff"), (.server, "earshot"),
            (.date, ResponseDates.shared.now),
        ]
        for field in self.fields + own { response.headerFields.append(HTTPField(name: field.name, value: field.value)) }
        return response
    }
}

extension HTTPRequestHead {
    /// Whether it may be answered by an ``HTTPLoopPart``: a GET of HTTP/1.1 or later without a body, a range or wishes for its connection.
    var isPlainGet: Bool {
        guard self.method == .GET, !self.isOld else { return false }
        return self.headers.allSatisfy { field in
            switch field.name.utf8.count {
            case 5: !field.name.isToken("range")
            case 6: !field.name.isToken("expect")
            case 7: !field.name.isToken("upgrade")
            case 10: !field.name.isToken("connection") || field.value.isToken("keep-alive")
            case 14: !field.name.isToken("content-length")
            case 17: !field.name.isToken("transfer-encoding")
            default: true
            }
        }
    }
}

extension String {
    /// Whether it is this lower-case token, ignoring case.
    fileprivate func isToken(_ token: StaticString) -> Bool {
        self.utf8.count == token.utf8CodeUnitCount
            && zip(self.utf8, UnsafeBufferPointer(start: token.utf8Start, count: token.utf8CodeUnitCount)).allSatisfy { $0 | 0x20 == $1 }
    }
}
