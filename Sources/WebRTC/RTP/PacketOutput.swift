/// Where a viewer's packets go: a buffer that the owner sends. Used by one thread at a time.
package protocol PacketOutput: AnyObject {
    /// Room for one datagram of at most `count` bytes.
    func reserve(_ count: Int) -> UnsafeMutableRawBufferPointer
    /// The datagram is complete: the first `count` bytes of what ``reserve(_:)`` returned.
    func commit(_ count: Int)
}
