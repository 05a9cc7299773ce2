import LibC

/// A run of ring messages gathered for sending. Reused by every viewer at the same position. Loop-bound.
final class MessageBatch {
    /// Sequence numbers of the first message, and of the one after the last.
    private(set) var from = 0
    private(set) var to = 0
    private(set) var bytes = 0
    private var count = 0
    /// The ring's head when this was gathered.
    private var head = 0
    private let pieces = UnsafeMutableBufferPointer<IOVector>.allocate(capacity: MessageBatch.limitVectors)

    private static let limitBytes = 1 << 20
    private static let limitVectors = 64

    init() { self.pieces.initialize(repeating: IOVector()) }

    deinit { self.pieces.deallocate() }

    /// Valid until the next ``gather(from:in:)``, and as long as the ring keeps the messages.
    var vectors: UnsafeBufferPointer<IOVector> { UnsafeBufferPointer(rebasing: self.pieces[..<self.count]) }

    /// Gathers the messages from `from` on that can be sent unchanged: up to a change, at most one batch. Reuses the batch for the same position.
    func gather(from: Int, in ring: FanoutRing) {
        // Messages never change: a batch from here is complete unless it ended at the head and the ring grew.
        if self.from == from, self.to < self.head || self.head == ring.head { return }
        self.from = from
        self.head = ring.head
        self.bytes = 0
        self.count = 0
        var sequence = from
        while sequence < self.head {
            let message = ring[sequence]
            guard let start = message.start else { break }
            if self.bytes > 0, self.bytes + message.length > Self.limitBytes { break }
            let last = self.count - 1
            if last >= 0, let base = self.pieces[last].iov_base, UnsafeRawPointer(base) + self.pieces[last].iov_len == start {
                self.pieces[last].iov_len += message.length
            } else {
                guard self.count < Self.limitVectors else { break }
                self.pieces[self.count] = IOVector(iov_base: UnsafeMutableRawPointer(mutating: start), iov_len: message.length)
                self.count += 1
            }
            self.bytes += message.length
            sequence += 1
        }
        self.to = sequence
    }
}
