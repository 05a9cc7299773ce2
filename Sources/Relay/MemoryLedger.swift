import Synchronization

/// Counts the bytes that a process holds for media and for its peers, against one limit.
///
/// Any thread. Whoever reserves memory that a peer decides about (a slab, a message under assembly, a mailbox's arena, a playlist's segments)
/// charges it here when it is reserved and gives it back when it is freed: once per block, never per message. What follows from a limit that
/// is passed is for others to say; streams that nobody watches lose their cached pictures (``RelayLoop/dropUnwatchedCaches()``).
package final class MemoryLedger: Sendable {
    /// Bytes.
    package let limit: Int
    private let charged = Atomic<Int>(0)

    package init(limit: Int) { self.limit = limit }

    /// Bytes.
    package var used: Int { self.charged.load(ordering: .relaxed) }

    package var isOver: Bool { self.used > self.limit }

    /// Negative: they are given back.
    package func charge(_ bytes: Int) { self.charged.add(bytes, ordering: .relaxed) }
}

/// What one holder has charged to a ledger; given back with it.
///
/// Its owner's thread changes it; it may be released on any.
package final class MemoryCharge {
    private let ledger: MemoryLedger
    package private(set) var bytes = 0

    package init(_ ledger: MemoryLedger) { self.ledger = ledger }

    deinit { self.ledger.charge(-self.bytes) }

    /// The holder has so many bytes now.
    package func set(_ bytes: Int) {
        guard bytes != self.bytes else { return }
        self.ledger.charge(bytes - self.bytes)
        self.bytes = bytes
    }
}
