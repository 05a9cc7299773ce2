import Foundation
import HTTPTypes
import Hummingbird
import NIOCore
import ServerTestSupport
import TestSupport

extension HTTPAnswer {
    /// What a client's library makes of the response: the whole body, unpacked.
    init(_ response: Response) async throws {
        let parts = LockedList<ByteBuffer>()
        try await response.body.write(Collector(parts: parts))
        var names: [String: String] = [:]
        for field in response.headers {
            let name = field.name.canonicalName
            names[name] = names[name].map { "\($0), \(field.value)" } ?? field.value
        }
        let sent = parts.all.reduce(into: Data()) { $0.append(contentsOf: $1.readableBytesView) }
        self.init(
            status: response.status.code, headers: names, body: names["content-encoding"] == "gzip" ? try GzipBody.unpacked(sent) : sent)
    }

    private struct Collector: ResponseBodyWriter {
        let parts: LockedList<ByteBuffer>

        func write(_ buffer: ByteBuffer) { self.parts.append(buffer) }
        func finish(_ trailingHeaders: HTTPFields?) {}
    }
}
