/// Token buckets by key, such as a client's host or a stream; bounded. A value.
package struct PaceTable<Key: Hashable & Sendable>: Sendable {
    private let rate: Double
    private let burst: Double
    private let most: Int
    private var buckets: [Key: TokenBucket] = [:]

    /// `rate`: per second. `most`: largest number of keys; at the limit, keys whose bucket is full are forgotten first, then all.
    package init(rate: Double, burst: Double, most: Int = 10_000) {
        self.rate = rate
        self.burst = burst
        self.most = most
    }

    package mutating func acquire(_ key: Key, nowNs: UInt64) -> TokenBucket.Outcome {
        if self.buckets.count >= self.most, self.buckets[key] == nil {
            for (known, var bucket) in self.buckets where bucket.isFull(nowNs: nowNs) { self.buckets[known] = nil }
            if self.buckets.count >= self.most { self.buckets.removeAll() }
        }
        return self.buckets[key, default: TokenBucket(rate: self.rate, burst: self.burst, nowNs: nowNs)].acquire(nowNs: nowNs)
    }

    /// The state of the key's bucket, from which nothing is taken; nil if it has none, which is like a full one.
    package mutating func peek(_ key: Key, nowNs: UInt64) -> TokenBucket.Outcome? { self.buckets[key]?.peek(nowNs: nowNs) }

    package var count: Int { self.buckets.count }
}
