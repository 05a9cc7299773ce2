package import NIOCore

/// Decodes the AMF3 values of one message, one at a time. Owned by the holder of the message; a plain value without a thread of its own.
///
/// After an error the remaining bytes cannot be decoded: make a new decoder for the next message.
package struct AMF3Decoder: Sendable {
    private var reader: AMFReader
    private var tables = AMF3Tables()

    package init(_ buffer: ByteBuffer, limits: AMFLimits = .init()) {
        reader = AMFReader(buffer, limits: limits)
    }

    /// The bytes after the last value read.
    package var unread: ByteBuffer { reader.buffer }

    /// The next value, or nil at the end of the bytes.
    package mutating func next() throws(AMFError) -> AMF3Value? {
        guard reader.remaining > 0 else { return nil }
        return try tables.value(from: &reader, depth: 0)
    }

    /// Decodes all remaining values.
    package mutating func all() throws(AMFError) -> [AMF3Value] {
        var values: [AMF3Value] = []
        while let value = try next() { values.append(value) }
        return values
    }

    /// Resolves `.reference(index)`; nil unless that complex value is complete.
    package func resolve(_ index: Int) -> AMF3Value? { tables.object(index) }
}
