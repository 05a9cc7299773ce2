import DequeModule
import LibC
import NIOCore

/// Bytes that a channel was given and the kernel has not accepted yet, in order. Owned by its channel. A value.
struct PendingWrites {
    private struct Write {
        var bytes: ByteBuffer
        let promise: EventLoopPromise<Void>?
    }

    private var writes = Deque<Write>()
    /// How many of them may be sent: the others wait for a flush.
    private var flushed = 0
    /// Of all, flushed or not.
    private(set) var bytes = 0

    /// Most pieces of one call. More bring little, and cost stack.
    private static let mostVectors = 64

    var isEmpty: Bool { self.writes.isEmpty }
    var hasFlushed: Bool { self.flushed > 0 }

    mutating func add(_ bytes: ByteBuffer, _ promise: EventLoopPromise<Void>?) {
        self.bytes += bytes.readableBytes
        self.writes.append(Write(bytes: bytes, promise: promise))
    }

    mutating func flush() { self.flushed = self.writes.count }

    /// Sends of what was flushed as much as one call takes. Returns the bytes that the kernel accepted, or -1 with errno.
    func send(to descriptor: CInt) -> Int {
        guard self.flushed > 0 else { return 0 }
        if self.flushed == 1 {
            return self.writes[0].bytes.withUnsafeReadableBytes { LibC.send(descriptor, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL)) }
        }
        let count = min(self.flushed, Self.mostVectors)
        return withUnsafeTemporaryAllocation(of: iovec.self, capacity: count) { vectors in
            for index in 0..<count {
                // The storage is held by the queue, which does not change during the call.
                let bytes = self.writes[index].bytes.withUnsafeReadableBytes { $0 }
                let start = UnsafeMutableRawPointer(mutating: bytes.baseAddress)
                vectors.initializeElement(at: index, to: iovec(iov_base: start, iov_len: bytes.count))
            }
            var message = msghdr()
            message.msg_iov = vectors.baseAddress
            message.msg_iovlen = count
            return sendmsg(descriptor, &message, CInt(MSG_NOSIGNAL))
        }
    }

    /// Removes what the kernel accepted. Returns the promises of whole writes, to be kept once nothing is being changed.
    mutating func accepted(_ count: Int) -> [EventLoopPromise<Void>] {
        var (left, kept) = (count, [EventLoopPromise<Void>]())
        self.bytes -= count
        while self.flushed > 0, self.writes[0].bytes.readableBytes <= left {
            let write = self.writes.removeFirst()
            self.flushed -= 1
            left -= write.bytes.readableBytes
            if let promise = write.promise { kept.append(promise) }
        }
        if left > 0, self.flushed > 0 { self.writes[0].bytes.moveReaderIndex(forwardBy: left) }
        // Most connections of an RTMP server have nothing more to write by this way.
        if self.writes.isEmpty { self.writes = Deque() }
        return kept
    }

    /// Gives all up. Returns their promises.
    mutating func removeAll() -> [EventLoopPromise<Void>] {
        defer { self = PendingWrites() }
        return self.writes.compactMap(\.promise)
    }
}
