package import NIOCore

extension Channel {
    /// Calls `body`, maybe more than once, when the peer of a request has closed its connection or its stream, or will send nothing more. Any thread.
    package func whenPeerIsGone(_ body: @escaping @Sendable () -> Void) {
        // Over HTTP/2 that is all: each request has a stream of its own, and the end of its input is no end of the stream.
        self.closeFuture.whenComplete { _ in body() }
        self.eventLoop.execute {
            guard let handler = try? self.pipeline.syncOperations.handler(type: HTTPConnectionHandler.self) else { return }
            handler.watch.whenEnded(body)
        }
    }
}

/// Whether a peer will send nothing more, and who wants to know. A value.
struct InputWatch {
    private var hasEnded = false
    private var body: (@Sendable () -> Void)?

    /// Calls `body`, in place of the former one, at the end; now if that was before.
    mutating func whenEnded(_ body: @escaping @Sendable () -> Void) {
        guard !self.hasEnded else { return body() }
        self.body = body
    }

    mutating func end() {
        self.hasEnded = true
        self.body?()
        self.body = nil
    }
}
