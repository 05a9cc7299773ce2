/// What the loop lets go of when the process holds too much.
extension RelayLoop {
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
