/// The part of a viewer that the pump touches for an ordinary message. The slots of a fanout lie side by side, in the order of its viewers. If the
/// pump used a thousand viewers' objects, connections and writers instead, every message would cost thousands of cache misses.
struct ViewerSlot {
    /// Sequence number of the next ring message; negative until the loop's ring is seeded.
    var cursor = -1
    /// Totals of whole batches that the pump sent directly from the slot.
    var bytes: UInt64 = 0
    var messages: UInt64 = 0
    /// The viewer's socket while its ``DirectLine`` is open, negative otherwise.
    var descriptor: CInt = -1
    /// The viewer gets every message unchanged, so the pump needs only the cursor. Set by the pump; cleared by any change of the messages that the
    /// viewer gets.
    var isSteady = false
}

/// The slots of one fanout. Not Sendable. A pointer to a slot is valid until the next ``append()`` or ``move(from:to:)``.
struct ViewerSlotTable: ~Copyable {
    private(set) var base: UnsafeMutablePointer<ViewerSlot>
    private(set) var count = 0
    private var capacity: Int

    init() {
        self.capacity = 4
        self.base = .allocate(capacity: self.capacity)
    }

    deinit {
        // Slots are trivial: there is nothing to deinitialise.
        self.base.deallocate()
    }

    mutating func append() {
        if self.count == self.capacity {
            let larger = UnsafeMutablePointer<ViewerSlot>.allocate(capacity: self.capacity * 2)
            larger.moveInitialize(from: self.base, count: self.count)
            self.base.deallocate()
            self.base = larger
            self.capacity *= 2
        }
        (self.base + self.count).initialize(to: ViewerSlot())
        self.count += 1
    }

    mutating func move(from: Int, to: Int) { self.base[to] = self.base[from] }

    /// Makes the pump look at each message for each viewer.
    func unsettle() { for index in 0..<self.count { self.base[index].isSteady = false } }

    mutating func truncate(to count: Int) { self.count = min(self.count, count) }
}
