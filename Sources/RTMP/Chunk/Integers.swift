import NIOCore

extension ByteBuffer {
    /// Reads a 24-bit big-endian integer, as chunk headers use.
    mutating func readUInt24() -> UInt32? {
        guard let value = self.getUInt24(at: self.readerIndex) else { return nil }
        self.moveReaderIndex(forwardBy: 3)
        return value
    }

    func getUInt24(at index: Int) -> UInt32? {
        // One read where a byte follows, as it almost always does.
        if let word = self.getInteger(at: index, as: UInt32.self) { return word >> 8 }
        guard
            let high = self.getInteger(at: index, as: UInt8.self),
            let low = self.getInteger(at: index + 1, as: UInt16.self)
        else { return nil }
        return UInt32(high) << 16 | UInt32(low)
    }
}
