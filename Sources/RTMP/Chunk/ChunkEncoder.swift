package import NIOCore

/// Encodes messages as chunks, always a full fmt 0 header and then fmt 3 (RTMP 1.0 §5.3). The bytes do not depend on earlier messages, so
/// that all viewers share them. A plain value.
///
/// ```
/// | basic header 1–3 | timestamp 3 | length 3 | type 1 | stream id 4 LE | (extended timestamp 4) | ≤ chunk size bytes |
/// | fmt 3 basic header 1–3 | (extended timestamp 4) | ≤ chunk size bytes | …
/// ```
package struct ChunkEncoder: Sendable {
    /// Payload bytes per chunk, which Set Chunk Size must have announced to the peer. 128 until then (RTMP 1.0 §5.4.1).
    package var chunkSize: Int

    package init(chunkSize: Int = 128) { self.chunkSize = max(1, chunkSize) }

    /// Bytes that ``encode(_:chunkStream:into:)`` appends.
    package func encodedLength(payload: Int, timestamp: UInt32, chunkStream: UInt32) -> Int {
        let basic = Self.basicHeaderLength(chunkStream)
        let extended = timestamp >= 0xFF_FFFF ? 4 : 0
        let continuations = payload == 0 ? 0 : (payload - 1) / self.chunkSize
        return basic + 11 + extended + payload + continuations * (basic + extended)
    }

    /// Appends the message's chunks.
    package func encode(_ message: Message, chunkStream: UInt32, into out: inout ByteBuffer) {
        let length = self.encodedLength(
            payload: message.payload.readableBytes, timestamp: message.timestamp, chunkStream: chunkStream)
        out.writeWithUnsafeMutableBytes(minimumWritableBytes: length) { bytes in
            _ = self.encode(message, chunkStream: chunkStream, into: UnsafeMutableRawBufferPointer(rebasing: bytes[..<length]))
            return length
        }
    }

    /// Writes the message's chunks into memory of exactly `encodedLength` bytes. Returns the length of the first chunk's header.
    package func encode(_ message: Message, chunkStream: UInt32, into out: UnsafeMutableRawBufferPointer) -> Int {
        let headerLength = Self.writeHeader(message, chunkStream: chunkStream, into: out)
        let repeatsTimestamp = message.timestamp >= 0xFF_FFFF
        var position = headerLength
        message.payload.withUnsafeReadableBytes { payload in
            var taken = 0
            while taken < payload.count {
                if taken > 0 {
                    position += Self.writeBasicHeader(format: 3, chunkStream: chunkStream, into: out, at: position)
                    // Adobe's players, librtmp and ffmpeg repeat the extended timestamp on fmt 3 (RTMP 1.0 §5.3.1.3).
                    if repeatsTimestamp {
                        out.storeBytes(of: message.timestamp.bigEndian, toByteOffset: position, as: UInt32.self)
                        position += 4
                    }
                }
                let count = min(self.chunkSize, payload.count - taken)
                UnsafeMutableRawBufferPointer(rebasing: out[position..<position + count])
                    .copyMemory(from: UnsafeRawBufferPointer(rebasing: payload[taken..<taken + count]))
                taken += count
                position += count
            }
        }
        assert(position == out.count)
        return headerLength
    }

    /// Extracts the payload of a message that `encode` wrote and returned `headerLength` for.
    package func payload(of encoded: UnsafeRawBufferPointer, headerLength: Int) -> ByteBuffer {
        // Later chunk headers hold a basic header and extended timestamp; the first also has the message header's 11 bytes.
        let continuation = headerLength - 11
        var payload = ByteBuffer()
        payload.reserveCapacity(encoded.count - headerLength)
        var position = headerLength
        while position < encoded.count {
            let end = min(position + self.chunkSize, encoded.count)
            payload.writeBytes(UnsafeRawBufferPointer(rebasing: encoded[position..<end]))
            position = end + continuation
        }
        return payload
    }

    /// Offset of the message stream id in a fmt 0 header (chunk stream below 64).
    private static let streamIDOffset = 8

    /// Changes the message stream id in a header that `encode` wrote for a chunk stream below 64.
    package static func setStreamID(_ streamID: UInt32, inHeader header: UnsafeMutableRawBufferPointer) {
        header.storeBytes(of: streamID.littleEndian, toByteOffset: self.streamIDOffset, as: UInt32.self)
    }

    /// Writes a fmt 0 header (RTMP 1.0 §5.3.1.2.1). Returns its length.
    private static func writeHeader(_ message: Message, chunkStream: UInt32, into out: UnsafeMutableRawBufferPointer) -> Int {
        var position = self.writeBasicHeader(format: 0, chunkStream: chunkStream, into: out, at: 0)
        let field = min(message.timestamp, 0xFF_FFFF)
        let length = message.payload.readableBytes
        for index in 0..<3 {
            let shift = 16 - 8 * index
            out[position] = UInt8(truncatingIfNeeded: field >> UInt32(shift))
            out[position + 3] = UInt8(truncatingIfNeeded: length >> shift)
            position += 1
        }
        out[position + 3] = message.type.rawValue
        // The only little-endian field.
        out.storeBytes(of: message.streamID.littleEndian, toByteOffset: position + 4, as: UInt32.self)
        position += 8
        if message.timestamp >= 0xFF_FFFF {
            out.storeBytes(of: message.timestamp.bigEndian, toByteOffset: position, as: UInt32.self)
            position += 4
        }
        return position
    }

    private static func basicHeaderLength(_ chunkStream: UInt32) -> Int {
        chunkStream < 64 ? 1 : (chunkStream < 320 ? 2 : 3)
    }

    // RTMP 1.0 §5.3.1.1
    private static func writeBasicHeader(
        format: UInt8, chunkStream: UInt32, into out: UnsafeMutableRawBufferPointer, at position: Int
    ) -> Int {
        if chunkStream < 64 {
            out[position] = format << 6 | UInt8(truncatingIfNeeded: chunkStream)
            return 1
        }
        let rest = chunkStream - 64
        out[position + 1] = UInt8(truncatingIfNeeded: rest)
        if chunkStream < 320 {
            out[position] = format << 6
            return 2
        }
        out[position] = format << 6 | 1
        out[position + 2] = UInt8(truncatingIfNeeded: rest >> 8)
        return 3
    }
}
