package import NIOCore

/// The state of a server's WebSocket and its timers: pings, the wait for their answers, the end of the closing handshake (RFC 6455 §5.5, §7.1). A
/// value; the clock is steady.
///
/// ```
///          begin close               the peer's close frame, 2 s
///   open ──────────────► closing ─────────────────────────────────► closed
/// ```
package struct WebSocketLife: Equatable {
    private enum Mode: Equatable {
        case open
        /// Our close frame is on its way. Waits for the peer's, unless the peer broke the protocol.
        case closing(untilMs: Int64, listens: Bool)
        case closed
    }

    /// The action that is due.
    package enum Due: Equatable {
        case nothing
        case ping
        /// No frame for ``deadMs``: the peer is gone, whatever its socket says.
        case dead
        /// The peer has not answered the close frame: close the socket.
        case cut
    }

    package static let pingMs: Int64 = 15_000
    package static let deadMs: Int64 = 45_000
    package static let closeMs: Int64 = 2_000

    private var mode = Mode.open
    private var lastFrameMs: Int64
    private var lastPingMs: Int64

    package init(nowMs: Int64) {
        self.lastFrameMs = nowMs
        self.lastPingMs = nowMs
    }

    package var isOpen: Bool { self.mode == .open }

    /// Whether received frames are still read.
    package var isListening: Bool {
        switch self.mode {
        case .open: true
        case .closing(_, let listens): listens
        case .closed: false
        }
    }

    /// Records a frame from the peer.
    package mutating func received(nowMs: Int64) { self.lastFrameMs = nowMs }

    /// Extends the deadline for a peer that has begun to read again: its pongs follow everything that it has not read yet. It gets the time of one
    /// more ping.
    package mutating func extend(nowMs: Int64) { self.lastFrameMs = max(self.lastFrameMs, nowMs - Self.pingMs) }

    /// Begins the close. Returns true if a close frame must be sent, which happens once.
    package mutating func beginClose(nowMs: Int64, listens: Bool) -> Bool {
        guard self.isOpen else { return false }
        self.mode = .closing(untilMs: nowMs + Self.closeMs, listens: listens)
        return true
    }

    /// Records the peer's close frame. Returns true if it must be answered (§5.5.1); either way the server then closes first (§7.1.1).
    package mutating func peerCloses(nowMs: Int64) -> Bool {
        guard self.mode != .closed else { return false }
        let answers = self.isOpen
        self.mode = .closing(untilMs: nowMs + Self.closeMs, listens: false)
        return answers
    }

    /// Records that the socket is closed.
    package mutating func end() { self.mode = .closed }

    package mutating func due(nowMs: Int64) -> Due {
        switch self.mode {
        case .closed: return .nothing
        case .closing(let untilMs, _): return nowMs >= untilMs ? .cut : .nothing
        case .open:
            if nowMs - self.lastFrameMs >= Self.deadMs { return .dead }
            guard nowMs - self.lastPingMs >= Self.pingMs else { return .nothing }
            self.lastPingMs = nowMs
            return .ping
        }
    }
}

extension ChannelHandlerContext {
    /// Closes the socket once everything written has been sent.
    package func closeWhenWritten() {
        let done = self.eventLoop.makePromise(of: Void.self)
        done.futureResult.assumeIsolated().whenComplete { _ in self.close(promise: nil) }
        self.writeAndFlush(NIOAny(ByteBuffer()), promise: done)
    }
}
