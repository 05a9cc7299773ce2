import HTTPTypes
import Hummingbird
import NIOCore

/// Reads one request's body: its handler what it needs, and after a refusal the answer what is still on the way.
///
/// `@unchecked Sendable`: only the request's own task uses it, first in the handler, then in the answer's writer.
final class BodyReader: @unchecked Sendable {
    /// Bytes.
    static let largest = 64 << 10
    /// From the head to the body's last byte; then the connection is closed.
    private static let patience = TimeAmount.seconds(10)
    /// Of a refused body, bytes and time that it is still read, so that its sender sees the answer before the connection's end.
    private static let lingering = 1 << 20
    private static let lingeringTime = TimeAmount.seconds(2)

    private var parts: RequestBody.AsyncIterator
    private let channel: any Channel
    /// By its head; nil when it comes in chunks.
    private let length: Int?
    private var isAtEnd = false

    init(_ request: Request, _ context: APIContext) {
        self.parts = request.body.makeAsyncIterator()
        self.channel = context.channel
        if let length = request.headers[.contentLength] {
            self.length = Int(length) ?? Int.max
        } else {
            self.length = request.headers[.transferEncoding] == nil ? 0 : nil
        }
    }

    /// The whole body. Throws 413 as soon as it is too large.
    func collect() async throws -> ByteBuffer {
        let tooLarge = APIError(.contentTooLarge, .tooLarge, "The body has more than \(Self.largest) bytes.")
        if let length, length > Self.largest { throw tooLarge }
        let channel = self.channel
        let deadline = channel.eventLoop.scheduleTask(in: Self.patience) { channel.close(mode: .all, promise: nil) }
        defer { deadline.cancel() }
        var body = ByteBuffer()
        while var part = try await self.parts.next() {
            guard body.readableBytes + part.readableBytes <= Self.largest else { throw tooLarge }
            body.writeBuffer(&part)
        }
        self.isAtEnd = true
        return body
    }

    /// What is left may go on for long: the connection is to end with the answer.
    var mustHangUp: Bool { !self.isAtEnd && (self.length.map { $0 > Self.largest } ?? true) }

    /// Reads on for a moment and closes the connection.
    func hangUp() async throws {
        let channel = self.channel
        let deadline = channel.eventLoop.scheduleTask(in: Self.lingeringTime) { channel.close(mode: .all, promise: nil) }
        defer { deadline.cancel() }
        var read = 0
        while read < Self.lingering, let part = try await self.parts.next() { read += part.readableBytes }
        channel.close(mode: .all, promise: nil)
    }
}
