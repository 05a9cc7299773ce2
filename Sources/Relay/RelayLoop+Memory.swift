/// Frees memory when a stream, or the process, holds too much.
extension RelayLoop {
    /// Notifies a publisher whose group of pictures exceeds the cache. Only once, since such a publisher usually goes on like that.
    func notifyOverflow(_ home: HomeStream) {
        guard let delegate = home.delegate else { return }
        let overflows = home.ring.gopOverflows
        guard overflows > home.overflowsTold ?? overflows else {
            if home.overflowsTold == nil { home.overflowsTold = overflows }
            return
        }
        home.overflowsTold = .max
        delegate.cacheOverflowed()
    }

    /// Drops the cached pictures of streams without viewers. Their next joiner waits for the next keyframe; running viewers lose nothing.
    /// The sweep calls it while the ledger is over its limit, just before it trims the rings.
    func dropUnwatchedCaches() {
        for home in self.homes.values where home.stream.viewerCount == 0 {
            for packaged in home.wireFormats {
                packaged.fanout.apply(.dropGOP)
                packaged.allocator.reset()
            }
        }
    }
}
