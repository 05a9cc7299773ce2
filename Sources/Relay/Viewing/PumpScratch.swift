import LibC

/// Memory that a loop's pump needs for one message at a time. Loop-bound.
package final class PumpScratch {
    /// Room for a first chunk header: at most 3 + 11 + 4 bytes.
    let header = UnsafeMutableRawBufferPointer.allocate(byteCount: 18, alignment: 8)
    let vectors = UnsafeMutableBufferPointer<IOVector>.allocate(capacity: 2)

    init() {
        self.vectors.initialize(repeating: IOVector())
    }

    deinit {
        self.header.deallocate()
        self.vectors.deallocate()
    }
}
