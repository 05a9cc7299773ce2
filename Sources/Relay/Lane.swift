/// All that the pump touches of a viewer for an ordinary message. The lanes of a fanout lie side by side, in the order of its viewers: a
/// thousand viewers' objects, connections and writers are a thousand cache misses each, for every message.
struct Lane {
    /// Sequence number of the next ring message; negative until the loop's ring is seeded.
    var cursor = -1
    /// Sent from here, by whole batches.
    var bytes: UInt64 = 0
    var messages: UInt64 = 0
    /// The viewer's socket while its ``DirectLine`` is open, negative otherwise.
    var descriptor: CInt = -1
    /// Nothing but the cursor stands between the viewer and the next batch: all messages, unchanged. Set by the pump, cleared by whatever
    /// changes what the viewer is sent.
    var isSteady = false
}

/// The lanes of one fanout. Not Sendable; a pointer to a lane is good until the next ``append()``.
struct LaneTable: ~Copyable {
    private(set) var base: UnsafeMutablePointer<Lane>
    private(set) var count = 0
    private var capacity: Int

    init() {
        self.capacity = 4
        self.base = .allocate(capacity: self.capacity)
    }

    deinit {
        // Lanes are trivial: there is nothing to deinitialise.
        self.base.deallocate()
    }

    mutating func append() {
        if self.count == self.capacity {
            let larger = UnsafeMutablePointer<Lane>.allocate(capacity: self.capacity * 2)
            larger.moveInitialize(from: self.base, count: self.count)
            self.base.deallocate()
            self.base = larger
            self.capacity *= 2
        }
        (self.base + self.count).initialize(to: Lane())
        self.count += 1
    }

    mutating func move(from: Int, to: Int) { self.base[to] = self.base[from] }

    mutating func truncate(to count: Int) { self.count = min(self.count, count) }
}
