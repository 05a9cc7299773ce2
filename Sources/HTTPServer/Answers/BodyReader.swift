import HTTPTypes
package import Hummingbird
package import NIOCore
package import Support

/// Reads one request's body for a handler. The connection limits how long a body may take, and handles a body that is not read: see
/// ``HTTPConnectionHandler`` and ``HTTP2StreamHandler``.
package struct BodyReader {
    /// Default limit of a body, in bytes.
    package static let usual = 64 << 10

    private let largest: Int
    private let body: RequestBody
    private let channel: any Channel
    /// From the request's head; nil for a chunked body.
    private let length: Int?
    private let expectsContinue: Bool
    private let ledger: MemoryLedger

    package init(_ request: Request, _ context: APIContext, _ ledger: MemoryLedger, atMost largest: Int = BodyReader.usual) {
        self.largest = largest
        self.ledger = ledger
        self.body = request.body
        self.channel = context.channel
        self.expectsContinue = request.headers[.expect] != nil
        if let length = request.headers[.contentLength] {
            self.length = Int(length) ?? Int.max
        } else {
            self.length = request.headers[.transferEncoding] == nil ? 0 : nil
        }
    }

    /// Returns the whole body. Throws 413 as soon as it is too large, and 400 if it does not come to its end as HTTP says.
    package func collect() async throws(APIError) -> ByteBuffer {
        let tooLarge = APIError(.contentTooLarge, .tooLarge, "The body is larger than \(self.largest) bytes.")
        if let length, length > self.largest { throw tooLarge }
        if self.expectsContinue { self.channel.triggerUserOutboundEvent(HTTPBodyWanted(), promise: nil) }
        let charge = MemoryCharge(self.ledger)
        var all = ByteBuffer()
        do {
            for try await var part in self.body {
                guard all.readableBytes + part.readableBytes <= self.largest else { throw tooLarge }
                all.writeBuffer(&part)
                // The capacity doubles, so the charge changes only a few times for each body.
                charge.set(all.capacity)
            }
        } catch {
            // All other errors are the peer's doing: bad chunks, a reset, an end before the body's own.
            throw (error as? APIError) ?? Self.broken
        }
        return all
    }

    private static let broken: APIError = {
        var error = APIError(.badRequest, .invalid, "The request's body is not framed as HTTP requires, or it broke off.")
        error.field = "body"
        error.rule = "expected as many bytes as Content-Length says, or chunks that each begin with their length in hexadecimal"
        return error
    }()
}
