import Support

/// A memory block that holds encoded messages back to back. A run of them is one `iovec`.
///
/// Only the stream's home loop writes to it, behind all published messages; every loop reads it. The last message, viewer or ring that
/// refers to it frees it.
///
/// `@unchecked Sendable`: bytes below a published message's end never change again, and other loops learn of a message through an
/// event loop's `execute`, which orders the write before their reads.
package final class Slab: @unchecked Sendable {
    let base: UnsafeMutableRawPointer
    /// Bytes.
    let capacity: Int
    /// Bytes in use. Touched by the writer only.
    private(set) var used = 0
    private let ledger: MemoryLedger?

    init(capacity: Int, ledger: MemoryLedger? = nil) {
        self.capacity = capacity
        self.ledger = ledger
        self.base = .allocate(byteCount: capacity, alignment: 16)
        ledger?.charge(capacity)
    }

    deinit {
        self.base.deallocate()
        self.ledger?.charge(-self.capacity)
    }

    var free: Int { self.capacity - self.used }

    /// Reserves the next `count` bytes, which must be free.
    func reserve(_ count: Int) -> UnsafeMutableRawBufferPointer {
        precondition(count <= self.free, "the slab has less free space than requested")
        let start = self.base + self.used
        self.used += count
        return UnsafeMutableRawBufferPointer(start: start, count: count)
    }
}

/// Hands out slabs whose size follows the stream's bit rate. A slab lasts between half a second and two seconds, within 8 to 256 KiB: a
/// small room costs little, and a large one does not allocate often. Owned by the stream's home loop.
struct SlabAllocator {
    private static let smallest = 8 << 10
    private static let largest = 256 << 10

    private var current: Slab?
    private var size = Self.smallest
    private var currentSince: Int64 = 0
    private let ledger: MemoryLedger?

    init(ledger: MemoryLedger? = nil) { self.ledger = ledger }

    /// Memory for one message of `count` bytes.
    mutating func reserve(_ count: Int, nowMs: Int64) -> (slab: Slab, bytes: UnsafeMutableRawBufferPointer) {
        if let slab = self.current, slab.free >= count { return (slab, slab.reserve(count)) }
        if self.current != nil {
            let lasted = nowMs - self.currentSince
            if lasted < 500 {
                self.size = min(self.size * 2, Self.largest)
            } else if lasted > 2_000 {
                self.size = max(self.size / 2, Self.smallest)
            }
        }
        // A message that fills half a slab gets its own, and the current one stays in use.
        if count > self.size / 2, self.current != nil {
            let slab = Slab(capacity: count, ledger: self.ledger)
            return (slab, slab.reserve(count))
        }
        let slab = Slab(capacity: max(self.size, count), ledger: self.ledger)
        self.current = slab
        self.currentSince = nowMs
        return (slab, slab.reserve(count))
    }

    /// Forgets the current slab, so that an ended stream keeps none.
    mutating func reset() {
        self.current = nil
    }
}
