import Media
import NIOCore

/// Reads an FLV stream as it arrives (Adobe FLV 10.1, Annex E). A plain value.
struct FLVReader {
    private var buffer = ByteBuffer()
    private var hasHeader = false
    /// The fault in the format; nil while there is none.
    private(set) var problem: String?

    /// Bytes: far more than the clip's largest message.
    private static let largestTag = 1 << 20

    mutating func append(_ bytes: inout ByteBuffer) { self.buffer.writeBuffer(&bytes) }

    /// The next tag: kind, milliseconds, body. nil until more bytes arrive, or at a problem.
    mutating func next() -> (kind: Frame.Kind, ms: Int64, payload: ByteBuffer)? {
        guard self.problem == nil else { return nil }
        if !self.hasHeader {
            // "FLV", version, flags, the header's size, and PreviousTagSize0 (E.2, E.3).
            guard self.buffer.readableBytes >= 13 else { return nil }
            guard self.buffer.readBytes(length: 4) == [0x46, 0x4C, 0x56, 0x01] else {
                self.problem = "this is not FLV"
                return nil
            }
            self.buffer.moveReaderIndex(forwardBy: 9)
            self.hasHeader = true
        }
        while let tag = self.tag() {
            if let kind = Frame.Kind(rawValue: tag.type) { return (kind, tag.ms, tag.body) }
        }
        return nil
    }

    private mutating func tag() -> (type: UInt8, ms: Int64, body: ByteBuffer)? {
        // E.4.1: type, size (3), time (3), its highest byte, stream (3), body, size of all that (4).
        let start = self.buffer.readerIndex
        guard let type = self.buffer.getInteger(at: start, as: UInt8.self), let word = self.buffer.getInteger(at: start, as: UInt32.self),
            let time = self.buffer.getInteger(at: start + 4, as: UInt32.self)
        else { return nil }
        let size = Int(word & 0xFF_FFFF)
        guard size <= Self.largestTag else {
            self.problem = "a tag of \(size) bytes"
            return nil
        }
        guard self.buffer.readableBytes >= 11 + size + 4 else { return nil }
        self.buffer.moveReaderIndex(forwardBy: 11)
        guard let body = self.buffer.readSlice(length: size), let previous = self.buffer.readInteger(as: UInt32.self) else { return nil }
        guard Int(previous) == 11 + size else {
            self.problem = "a tag of \(11 + size) bytes says that it has \(previous)"
            return nil
        }
        let ms = Int64(time >> 8) | Int64(time & 0xFF) << 24
        defer { self.buffer.discardReadBytes() }
        return (type & 0x1F, ms, ByteBuffer(bytes: body.readableBytesView))
    }
}
