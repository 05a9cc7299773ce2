import NIOCore
import Synchronization

/// One direction of a connection in memory: bounded, as a kernel's buffers are. Any thread.
final class MemoryPipe: Sendable {
    /// How much of a write was taken.
    enum Taken { case all, some, none }

    private struct State {
        /// As they were written.
        var parts = CircularBuffer<ByteBuffer>()
        var count = 0
        /// The writer has finished.
        var isEnded = false
        /// The reader is gone.
        var isBroken = false
        var canRead: @Sendable () -> Void = {}
        var canWrite: @Sendable () -> Void = {}
    }

    private let capacity: Int
    private let state = Mutex(State())

    /// `capacity`: bytes that wait for the reader.
    init(capacity: Int) { self.capacity = capacity }

    /// `canRead` is called when there is something new for the reader, `canWrite` when there is room again. On any thread.
    func connect(canRead: @escaping @Sendable () -> Void, canWrite: @escaping @Sendable () -> Void) {
        self.state.withLock { ($0.canRead, $0.canWrite) = (canRead, canWrite) }
    }

    /// Moves as many bytes as there is room for. Nil: nobody reads any more.
    func push(_ bytes: inout ByteBuffer) -> Taken? {
        let (taken, canRead) = self.state.withLock { state -> (Taken?, (@Sendable () -> Void)?) in
            guard !state.isBroken else { return (nil, nil) }
            let room = max(0, self.capacity - state.count)
            guard bytes.readableBytes > 0 else { return (.all, nil) }
            guard room > 0, let part = bytes.readSlice(length: min(room, bytes.readableBytes)) else { return (Taken.none, nil) }
            state.parts.append(part)
            state.count += part.readableBytes
            return (bytes.readableBytes == 0 ? .all : .some, state.canRead)
        }
        canRead?()
        return taken
    }

    /// The next bytes, at most as many as one read of a socket brings, and whether none will come after them.
    func pop() -> (bytes: ByteBuffer?, isEnd: Bool) {
        let (bytes, isEnd, canWrite) = self.state.withLock { state -> (ByteBuffer?, Bool, (@Sendable () -> Void)?) in
            guard state.count > 0 else { return (nil, state.isEnded, nil) }
            var bytes = ByteBuffer()
            while bytes.readableBytes < Self.longestRead, !state.parts.isEmpty {
                let room = Self.longestRead - bytes.readableBytes
                let first = state.parts.startIndex
                guard var part = state.parts[first].readSlice(length: min(room, state.parts[first].readableBytes)) else { break }
                bytes.writeBuffer(&part)
                if state.parts[first].readableBytes == 0 { state.parts.removeFirst() }
            }
            state.count -= bytes.readableBytes
            return (bytes, state.isEnded && state.count == 0, state.canWrite)
        }
        canWrite?()
        return (bytes, isEnd)
    }

    private static let longestRead = 64 << 10

    var hasEnded: Bool { self.state.withLock { $0.isEnded } }

    /// The writer has finished: the reader gets what waits, then the end.
    func end() {
        let canRead = self.state.withLock { state in
            state.isEnded = true
            return state.canRead
        }
        canRead()
    }

    /// The reader is gone; what waits is lost.
    func breakOff() {
        let canWrite = self.state.withLock { state in
            state.isBroken = true
            state.parts.removeAll()
            state.count = 0
            return state.canWrite
        }
        canWrite()
    }

    /// Forgets both sides, once they are closed.
    func disconnect() { self.connect(canRead: {}, canWrite: {}) }
}
