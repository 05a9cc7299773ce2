import Foundation
import NIOCore
import NIOHTTP1
import TestSupport

/// HTTP requests to servers of the ``MemoryNetwork``, each on a connection of its own, with compressed answers as browsers get them.
enum MemoryHTTP {
    static func call(_ method: String, _ url: URL, _ port: Int, _ body: Data?, _ fields: [String: String]) async throws -> HTTPAnswer {
        let parts = try URLComponents(url: url, resolvingAgainstBaseURL: false).orThrow()
        let target =
            (parts.percentEncodedPath.isEmpty ? "/" : parts.percentEncodedPath) + (parts.percentEncodedQuery.map { "?\($0)" } ?? "")
        var head = HTTPRequestHead(version: .http1_1, method: HTTPMethod(rawValue: method), uri: target)
        head.headers.add(name: "Host", value: "\(parts.host ?? ""):\(port)")
        head.headers.add(name: "Accept-Encoding", value: "gzip")
        for (name, value) in fields { head.headers.replaceOrAdd(name: name, value: value) }
        if body != nil || ["POST", "PUT", "PATCH"].contains(method) {
            head.headers.replaceOrAdd(name: "Content-Length", value: "\(body?.count ?? 0)")
        }
        // Written before the connection begins: a server ends one on which nothing comes, and a test on a busy machine may be that late.
        let connection = try await MemoryNetwork.connect(port) { [head] channel in
            let collector = Collector(channel.eventLoop.makePromise())
            try channel.pipeline.syncOperations.addHTTPClientHandlers()
            try channel.pipeline.syncOperations.addHandler(collector)
            channel.write(HTTPClientRequestPart.head(head), promise: nil)
            if let body { channel.write(HTTPClientRequestPart.body(.byteBuffer(ByteBuffer(bytes: body))), promise: nil) }
            channel.writeAndFlush(HTTPClientRequestPart.end(nil), promise: nil)
            return (channel, collector.answer)
        }
        let (channel, promised) = try connection.orThrow()
        let answer = try await promised.get()
        channel.close(promise: nil)
        return answer
    }

    /// Puts an answer together. Loop-bound.
    private final class Collector: ChannelInboundHandler {
        typealias InboundIn = HTTPClientResponsePart

        private let promise: EventLoopPromise<HTTPAnswer>
        private var head: HTTPResponseHead?
        private var body = Data()
        var answer: EventLoopFuture<HTTPAnswer> { self.promise.futureResult }

        init(_ promise: EventLoopPromise<HTTPAnswer>) { self.promise = promise }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            switch self.unwrapInboundIn(data) {
            case .head(let head): self.head = head
            case .body(let bytes): self.body.append(contentsOf: bytes.readableBytesView)
            case .end:
                guard let head = self.head else { return }
                let headers = Dictionary(head.headers.map { ($0.name.lowercased(), $0.value) }) { "\($0), \($1)" }
                self.promise.completeWith(
                    Result {
                        let isPacked = headers["content-encoding"] == "gzip" && !self.body.isEmpty
                        let body = isPacked ? try GzipBody.unpacked(self.body) : self.body
                        return HTTPAnswer(status: Int(head.status.code), headers: headers, body: body)
                    })
            }
        }

        func channelInactive(context: ChannelHandlerContext) { self.promise.fail(ChannelError.eof) }
        func errorCaught(context: ChannelHandlerContext, error: any Error) {
            self.promise.fail(error)
            context.close(promise: nil)
        }
    }
}
