package import Media
import NIOCore

/// Encodes frames for viewers over HTTP, WebSocket and WebRTC. Each becomes an FLV tag or the bare payload, framed as an HTTP chunk, a WebSocket
/// message, or not at all.
///
/// An FLV tag (Adobe FLV 10.1 §E.4.1) and the size that follows each (§E.3):
/// ```
/// type 1 | data size 3 | timestamp 3 | timestamp's upper byte 1 | stream id 3, zero | data | size of the tag 4
/// ```
package struct BodyEncoder: FrameEncoder {
    package enum Body: Sendable { case flvTag, payload }
    package enum Framing: Sendable {
        /// RFC 9112 §7.1.
        case httpChunk
        /// RFC 6455 §5.2: one binary message, not masked.
        case webSocket
        /// Messages are given out one by one.
        case none
    }

    private let body: Body
    private let framing: Framing
    private static let tagHeader = 11
    private static let tagTrailer = 4

    package init(_ body: Body, _ framing: Framing) {
        self.body = body
        self.framing = framing
    }

    private func bodyLength(_ frame: Frame) -> Int {
        frame.payload.readableBytes + (self.body == .flvTag ? Self.tagHeader + Self.tagTrailer : 0)
    }

    package func encodedLength(_ frame: Frame) -> Int {
        let count = self.bodyLength(frame)
        return count + self.framing.overhead(count)
    }

    package func encode(_ frame: Frame, into bytes: UnsafeMutableRawBufferPointer) -> Int {
        let count = self.bodyLength(frame)
        let start = self.framing.begin(count, into: bytes)
        // RFC 6455 §5.2: a text message, for the data frames that describe bare payloads.
        if self.framing == .webSocket, self.body == .payload, frame.kind == .data { bytes[0] = 0x81 }
        let body = UnsafeMutableRawBufferPointer(rebasing: bytes[start..<start + count])
        switch self.body {
        case .flvTag: Self.writeTag(frame, into: body)
        case .payload: frame.payload.withUnsafeReadableBytes { body.copyMemory(from: $0) }
        }
        self.framing.end(into: UnsafeMutableRawBufferPointer(rebasing: bytes[(start + count)...]))
        return 0
    }

    private static func writeTag(_ frame: Frame, into bytes: UnsafeMutableRawBufferPointer) {
        let count = frame.payload.readableBytes
        let timestamp = frame.wireTimestamp
        bytes.put(UInt32(frame.kind.rawValue) << 24 | UInt32(truncatingIfNeeded: count) & 0xFF_FFFF, at: 0)
        bytes.put(timestamp << 8 | timestamp >> 24, at: 4)
        for index in 8..<Self.tagHeader { bytes[index] = 0 }
        frame.payload.withUnsafeReadableBytes {
            UnsafeMutableRawBufferPointer(rebasing: bytes[Self.tagHeader..<Self.tagHeader + count]).copyMemory(from: $0)
        }
        bytes.put(UInt32(truncatingIfNeeded: Self.tagHeader + count), at: Self.tagHeader + count)
    }

    /// A data frame does not fit a chunked body of payloads. There it means that the following payloads have another type.
    package func change(of frame: Frame) -> StreamChange? {
        frame.kind == .data && self.body == .payload && self.framing == .httpChunk ? .changed : nil
    }

    /// HTTP and FLV have no message streams.
    package func setStreamID(_ streamID: UInt32, inHeader header: UnsafeMutableRawBufferPointer) {}
}

extension BodyEncoder.Framing {
    /// Bytes around a body of `count` bytes.
    func overhead(_ count: Int) -> Int {
        switch self {
        case .httpChunk: Self.hexDigits(count) + 4
        case .webSocket: count < 126 ? 2 : count <= 0xFFFF ? 4 : 10
        case .none: 0
        }
    }

    /// Writes the framing before the body and returns its length.
    func begin(_ count: Int, into bytes: UnsafeMutableRawBufferPointer) -> Int {
        switch self {
        case .httpChunk:
            let digits = Self.hexDigits(count)
            for index in 0..<digits {
                let nibble = UInt8(truncatingIfNeeded: count >> (4 * (digits - 1 - index))) & 15
                bytes[index] = nibble < 10 ? UInt8(ascii: "0") + nibble : UInt8(ascii: "a") + nibble - 10
            }
            bytes[digits] = UInt8(ascii: "\r")
            bytes[digits + 1] = UInt8(ascii: "\n")
            return digits + 2
        case .webSocket:
            bytes[0] = 0x82
            if count < 126 {
                bytes[1] = UInt8(truncatingIfNeeded: count)
                return 2
            }
            if count <= 0xFFFF {
                bytes[1] = 126
                bytes.put(UInt16(truncatingIfNeeded: count), at: 2)
                return 4
            }
            bytes[1] = 127
            bytes.put(UInt64(count), at: 2)
            return 10
        case .none: return 0
        }
    }

    func end(into bytes: UnsafeMutableRawBufferPointer) {
        guard self == .httpChunk else { return }
        bytes[0] = UInt8(ascii: "\r")
        bytes[1] = UInt8(ascii: "\n")
    }

    private static func hexDigits(_ count: Int) -> Int { max(1, (Int.bitWidth - count.leadingZeroBitCount + 3) / 4) }
}

extension UnsafeMutableRawBufferPointer {
    /// In network byte order.
    fileprivate func put<T: FixedWidthInteger & BitwiseCopyable>(_ value: T, at offset: Int) {
        self.storeBytes(of: value.bigEndian, toByteOffset: offset, as: T.self)
    }
}
