import HTTPTypes
import Hummingbird
import NIOCore

/// An answer of the API before it becomes a response. A value.
struct APIAnswer {
    enum Content {
        case none
        case bytes(ByteBuffer)
        /// A complete response made elsewhere, for a file.
        case whole(Response)
    }

    var status: HTTPResponse.Status
    var headers: HTTPFields
    var content: Content

    init(_ status: HTTPResponse.Status, headers: HTTPFields = [:]) {
        self.status = status
        self.headers = headers
        self.content = .none
    }

    init(_ status: HTTPResponse.Status, type: String, _ bytes: ByteBuffer) {
        self.status = status
        self.headers = [.contentType: type]
        self.content = .bytes(bytes)
    }

    init(_ status: HTTPResponse.Status, _ json: JSONValue) {
        var bytes: [UInt8] = []
        json.write(to: &bytes)
        self.init(status, type: "application/json", ByteBuffer(bytes: bytes))
    }

    init(_ response: Response) {
        self.status = response.status
        self.headers = [:]
        self.content = .whole(response)
    }

    init(_ error: APIError, requestID: String) {
        self.init(error.status, error.body(requestID: requestID))
        self.headers.append(contentsOf: error.headers)
    }

    /// The response, compressed if the client accepts gzip and text has at least ``Gzip/least`` bytes.
    func response(to request: Request) -> Response {
        switch self.content {
        case .none:
            var response = Response(status: self.status, headers: self.headers)
            // RFC 9110 §8.6: 204 has no Content-Length, and in 304 it would be that of the whole answer.
            response.headers[.contentLength] = nil
            return response
        case .whole(var response):
            response.headers.append(contentsOf: self.headers)
            return response
        case .bytes(let bytes):
            var headers = self.headers
            guard Self.isText(headers[.contentType] ?? "") else {
                return Response(status: self.status, headers: headers, body: .init(byteBuffer: bytes))
            }
            headers.append(HTTPField(name: .vary, value: "Accept-Encoding"))
            guard bytes.readableBytes >= Gzip.least, Gzip.isAccepted(request.headers[values: .acceptEncoding]),
                let packed = Gzip.pack(bytes)
            else { return Response(status: self.status, headers: headers, body: .init(byteBuffer: bytes)) }
            headers[.contentEncoding] = "gzip"
            if let tag = headers[.eTag] { headers[.eTag] = RoomTag.compressed(tag) }
            return Response(status: self.status, headers: headers, body: .init(byteBuffer: packed))
        }
    }

    /// Whether the type is text. Pictures are compressed already.
    private static func isText(_ type: String) -> Bool {
        type.hasPrefix("application/json") || type.hasPrefix("text/") || type.hasPrefix("image/svg+xml")
    }
}
