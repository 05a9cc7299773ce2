package import NIOCore

/// A violation of RFC 6455, with its close code (§7.4.1). Ends the connection.
package struct WebSocketError: Error, Equatable {
    package let code: UInt16
    package let reason: String

    package static func protocolError(_ reason: String) -> Self { Self(code: 1002, reason: reason) }
    static let notUTF8 = Self(code: 1007, reason: "text that is not UTF-8")
    package static func tooLarge(_ limit: Int) -> Self { Self(code: 1009, reason: "messages have at most \(limit) bytes") }
}

/// Parses a client's bytes into messages. Call `append`, then `next` until nil. A value; strict, and bounded by `messageBytes`.
///
/// ```
///  0               1               2 …
/// |F|RSV|opcode   |M|length 7     | length 16 or 64, if 126 or 127 | masking key 32 | payload …
/// ```
package struct WebSocketReader {
    package enum Input: Equatable {
        case text(String)
        case binary(ByteBuffer)
        case ping(ByteBuffer)
        case pong
        /// Nil: the peer gave no code.
        case close(UInt16?)
    }

    private struct Header {
        var isFinal: Bool
        var opcode: UInt8
        var length: Int
        var key: UInt32
        var bytes: Int

        var isControl: Bool { self.opcode & 8 != 0 }
    }

    /// Largest payload of a message, all its fragments together.
    private let messageBytes: Int
    private var buffer = ByteBuffer()
    /// Payload of the message whose last fragment is missing; `messageOpcode` is nil without such a message.
    private var message = ByteBuffer()
    private var messageOpcode: UInt8?
    /// Frames read so far, including fragments and control frames.
    package private(set) var frames = 0

    package init(messageBytes: Int = 64 << 10) { self.messageBytes = messageBytes }

    package mutating func append(_ bytes: inout ByteBuffer) {
        if self.buffer.readableBytes == 0 { self.buffer.clear() }
        self.buffer.writeBuffer(&bytes)
    }

    /// Bytes buffered: less than a frame's header and two messages, once `next` has returned nil.
    package var heldBytes: Int { self.buffer.readableBytes + self.message.readableBytes }

    /// Returns the next message or control frame, or nil if more bytes are needed. Must not be called again after it has thrown.
    package mutating func next() throws(WebSocketError) -> Input? {
        while let header = try self.header() {
            // The header was checked against the limits, so at most one frame is buffered here.
            guard self.buffer.readableBytes - header.bytes >= header.length else { return nil }
            self.frames += 1
            self.buffer.moveReaderIndex(forwardBy: header.bytes)
            guard var payload = self.buffer.readSlice(length: header.length) else { return nil }
            Self.unmask(&payload, header.key)
            if header.isControl { return try self.control(header.opcode, payload) }
            if let whole = try self.data(header, payload) { return whole }
        }
        return nil
    }

    /// The next frame's header, validated; nil while it is incomplete.
    private func header() throws(WebSocketError) -> Header? {
        let start = self.buffer.readerIndex
        guard let first = self.buffer.getInteger(at: start, as: UInt8.self) else { return nil }
        // §5.2: no extension was agreed on.
        guard first & 0x70 == 0 else { throw .protocolError("a reserved bit is set") }
        let opcode = first & 0x0F
        switch opcode {
        case 0, 1, 2, 8, 9, 10: break
        default: throw .protocolError("opcode \(opcode) is not known")
        }
        var header = Header(isFinal: first & 0x80 != 0, opcode: opcode, length: 0, key: 0, bytes: 2)
        // §5.4, §5.5
        if header.isControl {
            guard header.isFinal else { throw .protocolError("a fragmented control frame") }
        } else if opcode == 0 {
            guard self.messageOpcode != nil else { throw .protocolError("a continuation frame without a message to continue") }
        } else {
            guard self.messageOpcode == nil else { throw .protocolError("a new message before the end of the last one") }
        }
        guard let second = self.buffer.getInteger(at: start + 1, as: UInt8.self) else { return nil }
        // §5.1
        guard second & 0x80 != 0 else { throw .protocolError("an unmasked frame; clients must mask their frames") }
        guard let length = try self.length(second & 0x7F, isControl: header.isControl, &header.bytes) else { return nil }
        header.length = length
        guard header.isControl || length <= self.messageBytes - self.message.readableBytes else { throw .tooLarge(self.messageBytes) }
        guard let key = self.buffer.getInteger(at: start + header.bytes, as: UInt32.self) else { return nil }
        header.key = key
        header.bytes += 4
        return header
    }

    /// §5.2: the length, which must use the fewest bytes possible. Too large if it does not fit an Int.
    private func length(_ short: UInt8, isControl: Bool, _ bytes: inout Int) throws(WebSocketError) -> Int? {
        let at = self.buffer.readerIndex + 2
        switch short {
        case ...125: return Int(short)
        case _ where isControl: throw .protocolError("a control frame of more than 125 bytes")
        case 126:
            guard let length = self.buffer.getInteger(at: at, as: UInt16.self) else { return nil }
            guard length > 125 else { throw .protocolError("a length that is not in its shortest form") }
            bytes += 2
            return Int(length)
        default:
            guard let length = self.buffer.getInteger(at: at, as: UInt64.self) else { return nil }
            guard length > 0xFFFF, length >> 63 == 0 else { throw .protocolError("an invalid 64-bit length") }
            guard let length = Int(exactly: length) else { throw .tooLarge(self.messageBytes) }
            bytes += 8
            return length
        }
    }

    private mutating func data(_ header: Header, _ payload: ByteBuffer) throws(WebSocketError) -> Input? {
        var payload = payload
        let opcode = self.messageOpcode ?? header.opcode
        self.message.writeBuffer(&payload)
        guard header.isFinal else {
            self.messageOpcode = opcode
            return nil
        }
        var whole = ByteBuffer()
        swap(&whole, &self.message)
        self.messageOpcode = nil
        guard opcode == 1 else { return .binary(whole) }
        guard let text = Self.text(whole) else { throw .notUTF8 }
        return .text(text)
    }

    private func control(_ opcode: UInt8, _ payload: ByteBuffer) throws(WebSocketError) -> Input {
        switch opcode {
        case 9: return .ping(payload)
        case 10: return .pong
        default: return .close(try self.closeCode(payload))
        }
    }

    /// §5.5.1, §7.4.
    private func closeCode(_ payload: ByteBuffer) throws(WebSocketError) -> UInt16? {
        var payload = payload
        guard payload.readableBytes > 0 else { return nil }
        guard let code = payload.readInteger(as: UInt16.self) else { throw .protocolError("a close code of one byte; expected two") }
        switch code {
        case 1000...1003, 1007...1014, 3000...4999: break
        default: throw .protocolError("close code \(code) must not be sent")
        }
        guard Self.text(payload) != nil else { throw .notUTF8 }
        return code
    }

    private static func text(_ buffer: ByteBuffer) -> String? { String(validating: buffer.readableBytesView, as: UTF8.self) }

    /// §5.3.
    private static func unmask(_ payload: inout ByteBuffer, _ key: UInt32) {
        let key = [UInt8(key >> 24), UInt8(key >> 16 & 255), UInt8(key >> 8 & 255), UInt8(key & 255)]
        payload.withUnsafeMutableReadableBytes { bytes in
            for index in bytes.indices { bytes[index] ^= key[index & 3] }
        }
    }
}

/// Encodes a server's frames: whole messages, not masked.
package enum WebSocketWriter {
    package static func text(_ text: String) -> ByteBuffer {
        self.frame(1, length: text.utf8.count) { $0.writeString(text) }
    }

    package static func binary(_ bytes: ByteBuffer) -> ByteBuffer {
        self.frame(2, length: bytes.readableBytes) { $0.writeImmutableBuffer(bytes) }
    }

    package static func ping() -> ByteBuffer { self.frame(9, length: 0) { _ in } }

    /// Answers a ping with the ping's own payload, §5.5.3.
    package static func pong(_ payload: ByteBuffer) -> ByteBuffer {
        self.frame(10, length: payload.readableBytes) { $0.writeImmutableBuffer(payload) }
    }

    /// Cuts the reason to fit a control frame.
    package static func close(_ code: UInt16, _ reason: String) -> ByteBuffer {
        var bytes = ByteBuffer(string: reason)
        if bytes.readableBytes > 123 { bytes = ByteBuffer(string: String(reason.unicodeScalars.prefix(30))) }
        return self.frame(8, length: 2 + bytes.readableBytes) {
            $0.writeInteger(code)
            $0.writeImmutableBuffer(bytes)
        }
    }

    private static func frame(_ opcode: UInt8, length: Int, _ write: (inout ByteBuffer) -> Void) -> ByteBuffer {
        var buffer = ByteBuffer()
        buffer.reserveCapacity(length + 10)
        buffer.writeInteger(0x80 | opcode)
        switch length {
        case ...125: buffer.writeInteger(UInt8(length))
        case ...0xFFFF:
            buffer.writeInteger(126 as UInt8)
            buffer.writeInteger(UInt16(length))
        default:
            buffer.writeInteger(127 as UInt8)
            buffer.writeInteger(UInt64(length))
        }
        write(&buffer)
        return buffer
    }
}
