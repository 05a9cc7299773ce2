package import HTTPTypes
package import Hummingbird
package import NIOCore
package import Support

/// An answer of the API before it becomes a response. A value.
package struct APIAnswer {
    package enum Content {
        case none
        case bytes(ByteBuffer)
        /// A complete response made elsewhere, for a file.
        case whole(Response)
    }

    package var status: HTTPResponse.Status
    package var headers: HTTPFields
    package var content: Content

    package init(_ status: HTTPResponse.Status, headers: HTTPFields = [:]) {
        self.status = status
        self.headers = headers
        self.content = .none
    }

    package init(_ status: HTTPResponse.Status, type: String, _ bytes: ByteBuffer) {
        self.status = status
        self.headers = [.contentType: type]
        self.content = .bytes(bytes)
    }

    package init(_ status: HTTPResponse.Status, _ json: JSONValue) {
        var bytes: [UInt8] = []
        json.write(to: &bytes)
        self.init(status, type: "application/json", ByteBuffer(bytes: bytes))
    }

    package init(_ response: Response) {
        self.status = response.status
        self.headers = [:]
        self.content = .whole(response)
    }

    package init(_ error: APIError, requestID: String) {
        self.init(error.status, error.body(requestID: requestID))
        self.headers.append(contentsOf: error.headers)
    }

    /// The response, compressed if the client accepts gzip and text has at least ``Gzip/least`` bytes.
    package func response(to request: Request) -> Response {
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
            // The compressed representation has a strong tag of its own (RFC 9110 §8.8.3.3).
            if let tag = headers[.eTag] { headers[.eTag] = "\(tag.dropLast())-gzip\"" }
            return Response(status: self.status, headers: headers, body: .init(byteBuffer: packed))
        }
    }

    /// Whether the type is text. Pictures are compressed already.
    private static func isText(_ type: String) -> Bool {
        type.hasPrefix("application/json") || type.hasPrefix("text/") || type.hasPrefix("image/svg+xml")
    }
}

extension APIError {
    /// The response for an error outside the API's calls, such as one of HLS.
    package func response(_ context: APIContext) -> Response {
        let answer = APIAnswer(self, requestID: context.id)
        guard case .bytes(let bytes) = answer.content else { return Response(status: answer.status, headers: answer.headers) }
        return Response(status: answer.status, headers: answer.headers, body: .init(byteBuffer: bytes))
    }
}
