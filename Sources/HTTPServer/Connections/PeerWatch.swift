package import NIOCore

extension Channel {
    /// Calls `body`, maybe more than once, when the peer of a request has closed its connection or its stream, or will send nothing more. Any thread.
    package func whenPeerIsGone(_ body: @escaping @Sendable () -> Void) {
        // Over HTTP/2 that is all: each request has a stream of its own, and the end of its input is no end of the stream.
        self.closeFuture.whenComplete { _ in body() }
        self.eventLoop.execute {
            guard let handler = try? self.pipeline.syncOperations.handler(type: HTTPConnectionHandler.self) else { return }
            if handler.watch.isOver(orCalls: body) { body() }
        }
    }
}

/// Whether a peer will send nothing more, and who wants to know. A value that calls nobody itself.
struct InputWatch {
    private var hasEnded = false
    private var body: (@Sendable () -> Void)?

    /// Whether it has ended already; otherwise keeps `body`, in place of the former one, for ``end()``.
    mutating func isOver(orCalls body: @escaping @Sendable () -> Void) -> Bool {
        if !self.hasEnded { self.body = body }
        return self.hasEnded
    }

    /// Returns what is to be called now.
    mutating func end() -> (@Sendable () -> Void)? {
        defer { self.body = nil }
        self.hasEnded = true
        return self.body
    }
}
