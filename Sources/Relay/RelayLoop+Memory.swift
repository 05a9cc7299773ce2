/// What the loop lets go of when a stream, or the process, holds too much.
extension RelayLoop {
    /// Tells a publisher that its pictures are more than what is cached: once, for it goes on like that.
    func tellOverflow(_ home: HomeStream) {
        guard let delegate = home.delegate else { return }
        let overflows = home.ring.gopOverflows
        guard overflows > home.overflowsTold ?? overflows else {
            if home.overflowsTold == nil { home.overflowsTold = overflows }
            return
        }
        home.overflowsTold = .max
        delegate.cacheOverflowed()
    }

    /// Drops the cached pictures of streams without viewers, which their next joiner does without until the next keyframe. Running viewers lose
    /// nothing. The sweep calls it while the ledger is over its limit, just before it trims the rings.
    func dropUnwatchedCaches() {
        for home in self.homes.values where home.stream.viewerCount == 0 {
            for packaged in home.packagings {
                packaged.fanout.apply(.dropGOP)
                packaged.allocator.reset()
            }
        }
    }
}
