import Crypto
package import HTTPTypes
package import Hummingbird
package import NIOCore
import Support

/// A file for browsers that is part of the program. A value.
package struct EmbeddedFile: Sendable {
    package let type: String
    package let bytes: ByteBuffer
    /// The entity tag of the file's content (RFC 9110 §8.8.3).
    package let etag: String

    /// `name`: its ending gives the type.
    package init(_ name: String, _ content: UnsafeRawBufferPointer) {
        self.type = Self.type(of: name)
        self.bytes = ByteBuffer(bytes: content)
        self.etag = "\"\(SecretText.hex(SHA256.hash(data: content).prefix(12)))\""
    }

    /// The answer to a GET or HEAD. Browsers ask each time, and get 304 until the server's version changes.
    package func response(to request: Request, _ headers: HTTPFields) -> Response {
        var answer = APIAnswer(.ok, type: self.type, self.bytes)
        answer.headers.append(contentsOf: headers)
        answer.headers[.cacheControl] = "no-cache"
        answer.headers[.eTag] = self.etag
        let known = request.headers[values: .ifNoneMatch].joined(separator: ",")
        if known.contains(self.etag) || known.contains("\(self.etag.dropLast())-gzip\"") {
            answer = APIAnswer(.notModified, headers: answer.headers)
            answer.headers[.contentType] = nil
        }
        return answer.response(to: request)
    }

    private static func type(of file: String) -> String {
        switch file.split(separator: ".").last {
        case "html": "text/html; charset=utf-8"
        case "js": "text/javascript; charset=utf-8"
        case "css": "text/css; charset=utf-8"
        case "svg": "image/svg+xml"
        default: "application/octet-stream"
        }
    }
}
