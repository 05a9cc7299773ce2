package import NIOCore

extension TagInfo {
    /// Tells `onMetaData` from other script data, with or without the publisher's `@setDataFrame` before it.
    ///
    /// `bodyOffset` is where the name `onMetaData` starts, which is what viewers are sent. Only the names are read; the values are the AMF decoder's. Never throws: script data that is no AMF0 string is opaque.
    package static func parseData(_ payload: ByteBuffer) -> TagInfo {
        var bytes = payload
        _ = bytes.skipAMF0String("@setDataFrame")
        let offset = payload.readableBytes &- bytes.readableBytes
        return bytes.skipAMF0String("onMetaData") ? TagInfo(flags: .metadata, bodyOffset: UInt32(clamping: offset)) : TagInfo()
    }
}

extension ByteBuffer {
    /// Moves past an AMF0 string of exactly this text: marker 2, UI16 length, UTF-8 (AMF0 §2.4). False leaves the reader in place.
    fileprivate mutating func skipAMF0String(_ text: StaticString) -> Bool {
        let count = text.utf8CodeUnitCount
        guard
            self.getInteger(at: self.readerIndex, as: UInt8.self) == 2,
            self.getInteger(at: self.readerIndex &+ 1, as: UInt16.self) == UInt16(exactly: count),
            self.readableBytes >= count &+ 3
        else { return false }
        let found = self.withUnsafeReadableBytes { bytes in
            text.withUTF8Buffer { expected in bytes[3..<(3 &+ count)].elementsEqual(expected) }
        }
        if found { self.moveReaderIndex(forwardBy: count &+ 3) }
        return found
    }
}
