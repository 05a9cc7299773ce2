internal import NIOCore

/// Checked reads over one message's bytes, and the message's budgets. Owned by a decoder; a plain value.
///
/// Nothing is reserved for a length before the bytes of that length are known to be there.
struct AMFReader: Sendable {
    private(set) var buffer: ByteBuffer
    let limits: AMFLimits
    private let start: Int
    private var values = 0
    private var textBytes = 0

    init(_ buffer: ByteBuffer, limits: AMFLimits) {
        self.buffer = buffer
        self.limits = limits
        start = buffer.readerIndex
    }

    /// Bytes read so far.
    var offset: Int { buffer.readerIndex - start }

    /// Bytes not read yet.
    var remaining: Int { buffer.readableBytes }

    func require(_ count: Int, for field: AMFField) throws(AMFError) {
        guard count <= remaining else {
            throw .truncated(field, needed: count, available: remaining, offset: offset)
        }
    }

    mutating func integer<T: FixedWidthInteger>(_ field: AMFField, as type: T.Type = T.self) throws(AMFError) -> T {
        guard let value = buffer.readInteger(as: T.self) else {
            throw .truncated(field, needed: MemoryLayout<T>.size, available: remaining, offset: offset)
        }
        return value
    }

    /// An IEEE 754 double, big-endian.
    mutating func double(_ field: AMFField) throws(AMFError) -> Double {
        Double(bitPattern: try integer(field, as: UInt64.self))
    }

    /// `count` bytes of text; what is not UTF-8 becomes U+FFFD.
    mutating func text(_ count: Int, _ field: AMFField) throws(AMFError) -> String {
        try require(count, for: field)
        guard let text = buffer.readString(length: count) else {
            throw .truncated(field, needed: count, available: remaining, offset: offset)
        }
        return text
    }

    mutating func bytes(_ count: Int, _ field: AMFField) throws(AMFError) -> [UInt8] {
        try require(count, for: field)
        guard let bytes = buffer.readBytes(length: count) else {
            throw .truncated(field, needed: count, available: remaining, offset: offset)
        }
        return bytes
    }

    mutating func u29(_ field: AMFField) throws(AMFError) -> UInt32 {
        guard let value = buffer.readAMF3U29() else {
            throw .truncated(field, needed: remaining + 1, available: remaining, offset: offset)
        }
        return value
    }

    /// True, and read, when the next three bytes end a property list: AMF0 §2.11, an empty name and the object end marker.
    mutating func objectEnd() -> Bool {
        let index = buffer.readerIndex
        guard buffer.getInteger(at: index, as: UInt16.self) == 0,
            buffer.getInteger(at: index + 2, as: UInt8.self) == AMF0Marker.objectEnd
        else { return false }
        buffer.moveReaderIndex(forwardBy: 3)
        return true
    }

    /// One more value in this message.
    mutating func countValue() throws(AMFError) {
        guard values < limits.totalValues else { throw .tooManyValues(maximum: limits.totalValues, offset: offset) }
        values += 1
    }

    /// Text that now stands in the result, whether its bytes were sent or referred to.
    mutating func countText(_ bytes: Int) throws(AMFError) {
        guard bytes <= limits.stringBytes - textBytes else { throw .tooMuchText(maximum: limits.stringBytes, offset: offset) }
        textBytes += bytes
    }

    /// The depth inside a container that stands at `depth`.
    func deeper(_ depth: Int) throws(AMFError) -> Int {
        guard depth < limits.depth else { throw .tooDeep(maximum: limits.depth, offset: offset) }
        return depth + 1
    }

    /// Refuses a declared count that exceeds the limit, or that the bytes left cannot hold at `size` bytes an entry.
    func check(count: Int, of field: AMFField, size: Int = 1) throws(AMFError) {
        let maximum = min(limits.entriesPerContainer, remaining / size)
        guard count <= maximum else { throw .countTooLarge(field, count: count, maximum: maximum, offset: offset) }
    }

    /// Refuses one more entry of a container without a declared count.
    func checkRoom(after count: Int, in field: AMFField) throws(AMFError) {
        guard count < limits.entriesPerContainer else {
            throw .countTooLarge(field, count: count + 1, maximum: limits.entriesPerContainer, offset: offset)
        }
    }
}
