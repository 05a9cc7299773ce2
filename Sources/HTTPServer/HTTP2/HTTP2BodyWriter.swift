import NIOCore
import NIOHTTPTypes

/// Turns the HTTP/1.1 body bytes of a handoff's handler into HTTP/2 DATA. The last chunk of a chunked body ends the stream; a handler that
/// sends no chunks ends it by closing its output. Loop-bound.
final class HTTP2BodyWriter: ChannelDuplexHandler {
    typealias InboundIn = Never
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = HTTPResponsePart

    private var chunks: ChunkReader?
    /// Set when the end is written; completes once it has been sent.
    private var ended: EventLoopFuture<Void>?
    private var forwardsWritability = false

    init(isChunked: Bool) { self.chunks = isChunked ? ChunkReader() : nil }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        var bytes = self.unwrapOutboundIn(data)
        if let ended = self.ended {
            // The promise of an empty write completes once everything before it has been sent.
            if bytes.readableBytes == 0 { ended.cascade(to: promise) } else { promise?.fail(ChannelError.outputClosed) }
            return
        }
        guard self.chunks != nil, bytes.readableBytes > 0 else {
            return context.write(self.wrapOutboundOut(.body(bytes)), promise: promise)
        }
        var last: ByteBuffer?
        var isOver = false
        while !isOver, let piece = self.chunks?.next(&bytes) {
            if let last { context.write(self.wrapOutboundOut(.body(last)), promise: nil) }
            last = nil
            switch piece {
            case .bytes(let body): last = body
            case .end: isOver = true
            case .broken:
                promise?.fail(ChannelError.inappropriateOperationForState)
                return context.close(promise: nil)
            }
        }
        if isOver {
            self.end(context, promise)
        } else if let last {
            context.write(self.wrapOutboundOut(.body(last)), promise: promise)
        } else {
            promise?.succeed()
        }
    }

    private func end(_ context: ChannelHandlerContext, _ promise: EventLoopPromise<Void>?) {
        let written = context.eventLoop.makePromise(of: Void.self)
        self.ended = written.futureResult
        written.futureResult.cascade(to: promise)
        context.write(self.wrapOutboundOut(.end(nil)), promise: written)
    }

    func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        guard mode == .output else { return context.close(mode: mode, promise: promise) }
        guard self.ended == nil else {
            promise?.succeed()
            return
        }
        self.end(context, promise)
        context.flush()
    }

    /// Forwards the event on a later loop turn. NIO fires it in the middle of a write. A handler that wrote at once would fill the connection's
    /// buffers with everything the client's window allows, before its first byte is out.
    func channelWritabilityChanged(context: ChannelHandlerContext) {
        guard !self.forwardsWritability else { return }
        self.forwardsWritability = true
        let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        context.eventLoop.execute {
            let (writer, context) = bound.value
            writer.forwardsWritability = false
            context.fireChannelWritabilityChanged()
        }
    }
}

/// Removes the chunk framing (RFC 9112 §7.1) from a body, however its bytes are split. The server made the chunks itself, so there are no
/// extensions and no trailers.
struct ChunkReader: Equatable {
    enum Piece: Equatable {
        case bytes(ByteBuffer)
        case end
        case broken
    }

    private enum State: Equatable {
        case size(Int, digits: Int)
        case sizeEnd(Int)
        case body(Int)
        /// Bytes left of the CRLF after a chunk.
        case bodyEnd(Int)
        case ended
        case broken
    }

    private var state = State.size(0, digits: 0)
    private static let longestSize = 8

    /// Returns nil if more bytes are needed.
    mutating func next(_ input: inout ByteBuffer) -> Piece? {
        while input.readableBytes > 0 {
            switch self.state {
            case .size(let size, let digits):
                guard let byte = input.readInteger(as: UInt8.self) else { return nil }
                if byte == UInt8(ascii: "\r"), digits > 0 {
                    self.state = .sizeEnd(size)
                } else if let digit = Self.digit(byte), digits < Self.longestSize {
                    self.state = .size(size << 4 | digit, digits: digits + 1)
                } else {
                    self.state = .broken
                }
            case .sizeEnd(let size):
                guard input.readInteger(as: UInt8.self) == UInt8(ascii: "\n") else {
                    self.state = .broken
                    continue
                }
                self.state = size == 0 ? .ended : .body(size)
                if size == 0 {
                    input.moveReaderIndex(to: input.writerIndex)
                    return .end
                }
            case .body(let left):
                guard let bytes = input.readSlice(length: min(left, input.readableBytes)) else { return nil }
                self.state = left > bytes.readableBytes ? .body(left - bytes.readableBytes) : .bodyEnd(2)
                return .bytes(bytes)
            case .bodyEnd(let left):
                input.moveReaderIndex(forwardBy: 1)
                self.state = left > 1 ? .bodyEnd(left - 1) : .size(0, digits: 0)
            case .ended:
                input.moveReaderIndex(to: input.writerIndex)
            case .broken:
                return .broken
            }
        }
        return self.state == .broken ? .broken : nil
    }

    private static func digit(_ byte: UInt8) -> Int? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): Int(byte - UInt8(ascii: "0"))
        case UInt8(ascii: "a")...UInt8(ascii: "f"): Int(byte - UInt8(ascii: "a")) + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): Int(byte - UInt8(ascii: "A")) + 10
        default: nil
        }
    }
}
