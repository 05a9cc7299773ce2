import Synchronization

/// Counts the bytes a process holds for media and for its peers, against one limit.
///
/// Any thread. Owners of memory whose size a peer decides (a slab, a message under assembly, a mailbox's arena, a playlist's segments) charge it here
/// when they reserve it and give it back when they free it: once per block, never per message. The ledger does not enforce its limit; others do, by
/// dropping the cached pictures of unwatched streams.
package final class MemoryLedger: Sendable {
    private let most: Atomic<Int>
    private let charged = Atomic<Int>(0)

    package init(limit: Int) { self.most = Atomic(limit) }

    /// Bytes.
    package var limit: Int { self.most.load(ordering: .relaxed) }

    package func set(limit: Int) { self.most.store(limit, ordering: .relaxed) }

    /// Bytes.
    package var used: Int { self.charged.load(ordering: .relaxed) }

    package var isOver: Bool { self.used > self.limit }

    /// Charges bytes; a negative number gives them back.
    package func charge(_ bytes: Int) { self.charged.add(bytes, ordering: .relaxed) }
}

/// One holder's charge to a ledger, given back on deinit.
///
/// Changed on its owner's thread; may be released on any.
package final class MemoryCharge {
    private let ledger: MemoryLedger
    package private(set) var bytes = 0

    package init(_ ledger: MemoryLedger) { self.ledger = ledger }

    deinit { self.ledger.charge(-self.bytes) }

    /// Sets the bytes that the holder has now.
    package func set(_ bytes: Int) {
        guard bytes != self.bytes else { return }
        self.ledger.charge(bytes - self.bytes)
        self.bytes = bytes
    }
}
