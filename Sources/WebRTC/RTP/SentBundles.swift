internal import DequeModule

/// What a viewer was sent lately, so that it can get it again: where each bundle's packets began in its numbering. The bytes are the stream's, shared by
/// all viewers and kept by `owner`. A value.
struct SentBundles {
    struct Sent {
        /// Keeps ``bytes``.
        let owner: AnyObject
        let bytes: UnsafeRawBufferPointer
        /// The index of the first packet: roll-overs counted.
        let first: UInt64
        let count: Int
        /// The transport-wide number of the first packet.
        let number: UInt16
        /// Its packets told to hold the picture back.
        let isDelayed: Bool
        /// The RTP time that its packets have.
        let time: UInt32
        let payloadType: UInt8
        let atMs: Int64
    }

    private var sent: Deque<Sent> = []
    /// The most that there were since the memory was sized.
    private var peak = 0

    /// Older ones are of no use: a player has gone on without them.
    private static let keptMs: Int64 = 2_000
    /// A burst of pictures for a joiner has a few hundred.
    private static let most = 1_024
    /// Two seconds of most streams.
    private static let usual = 64

    mutating func append(_ bundle: Sent) {
        while let oldest = self.sent.first, self.sent.count >= Self.most || bundle.atMs - oldest.atMs > Self.keptMs {
            self.sent.removeFirst()
        }
        self.sent.append(bundle)
        self.peak = max(self.peak, self.sent.count)
        // A joiner's burst is over: its memory is ten times what a stream needs afterwards.
        guard self.peak > Self.usual, self.sent.count < self.peak / 3 else { return }
        var fresh = Deque<Sent>(minimumCapacity: Self.usual)
        fresh.append(contentsOf: self.sent)
        self.sent = fresh
        self.peak = fresh.count
    }

    /// The bundle with the packet of this index.
    func find(_ index: UInt64) -> Sent? {
        var (low, high) = (0, self.sent.count)
        while low < high {
            let middle = (low + high) / 2
            if self.sent[middle].first <= index { low = middle + 1 } else { high = middle }
        }
        guard low > 0 else { return nil }
        let found = self.sent[low - 1]
        return index < found.first + UInt64(found.count) ? found : nil
    }
}
