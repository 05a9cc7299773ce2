package import NIOCore

extension Channel {
    /// Calls `body`, maybe more than once, when the peer of a request has closed its connection or its stream, or will send nothing more. Any thread.
    package func whenPeerIsGone(_ body: @escaping @Sendable () -> Void) {
        // Over HTTP/2 that is all: each request has a stream of its own, and the end of its input is no end of the stream.
        self.closeFuture.whenComplete { _ in body() }
        self.eventLoop.execute {
            guard let handler = try? self.pipeline.syncOperations.handler(type: HTTPConnectionHandler.self) else { return }
            handler.whenInputCloses(body)
        }
    }
}
