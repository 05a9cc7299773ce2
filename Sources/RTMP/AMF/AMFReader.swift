internal import NIOCore

/// Bounds-checked reads over one message, and its budgets. Owned by a decoder; a plain value.
///
/// Allocates nothing for a length until that many bytes are known to be present.
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

    /// Reads `count` bytes of text; invalid UTF-8 becomes U+FFFD.
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

    /// Consumes the end of a property list if the next three bytes are one. That is an empty name and the object end marker (AMF0 §2.11).
    mutating func objectEnd() -> Bool {
        let index = buffer.readerIndex
        guard buffer.getInteger(at: index, as: UInt16.self) == 0,
            buffer.getInteger(at: index + 2, as: UInt8.self) == AMF0Marker.objectEnd
        else { return false }
        buffer.moveReaderIndex(forwardBy: 3)
        return true
    }

    /// Counts one more value of this message.
    mutating func countValue() throws(AMFError) {
        guard values < limits.totalValues else { throw .tooManyValues(maximum: limits.totalValues, offset: offset) }
        values += 1
    }

    /// Counts text added to the result, whether sent inline or by reference.
    mutating func countText(_ bytes: Int) throws(AMFError) {
        guard bytes <= limits.stringBytes - textBytes else { throw .tooMuchText(maximum: limits.stringBytes, offset: offset) }
        textBytes += bytes
    }

    /// Returns the depth inside a container at `depth`; throws if that is too deep.
    func deeper(_ depth: Int) throws(AMFError) -> Int {
        guard depth < limits.depth else { throw .tooDeep(maximum: limits.depth, offset: offset) }
        return depth + 1
    }

    /// Rejects a declared count above the limit. Also one that the remaining bytes cannot hold at `size` bytes an entry.
    func check(count: Int, of field: AMFField, size: Int = 1) throws(AMFError) {
        let maximum = min(limits.entriesPerContainer, remaining / size)
        guard count <= maximum else { throw .countTooLarge(field, count: count, maximum: maximum, offset: offset) }
    }

    /// Rejects an entry beyond the limit in a container without a declared count.
    func checkRoom(after count: Int, in field: AMFField) throws(AMFError) {
        guard count < limits.entriesPerContainer else {
            throw .countTooLarge(field, count: count + 1, maximum: limits.entriesPerContainer, offset: offset)
        }
    }
}
