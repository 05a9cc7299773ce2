import LibC
import NIOCore
package import RTMP

/// AVC and AAC tags that carry a number in place of pictures and sound.
package enum SyntheticTag {
    package static let videoHeader: [UInt8] =
        [0x17, 0, 0, 0, 0, 1, 0x42, 0xC0, 0x1E, 0xFF, 0xE1, 0, 4, 0x67, 0x42, 0xC0, 0x1E, 1, 0, 2, 0x68, 0xCE]
    package static let audioHeader: [UInt8] = [0xAF, 0, 0x12, 0x10]

    package static func video(_ number: Int, isKeyframe: Bool, bytes: Int) -> [UInt8] {
        self.fill([isKeyframe ? 0x17 : 0x27, 1, 0, 0, 0], number, bytes)
    }

    package static func audio(_ number: Int, bytes: Int) -> [UInt8] {
        self.fill([0xAF, 1], number, bytes)
    }

    /// The number in a message made by `video` or `audio`; nil unless all its bytes are intact.
    package static func number(_ message: Message) -> Int? {
        var payload = message.payload
        let header = message.type == .video ? 5 : 2
        guard payload.readableBytes >= header + 8, payload.getInteger(at: payload.readerIndex + 1, as: UInt8.self) == 1 else { return nil }
        payload.moveReaderIndex(forwardBy: header)
        guard let number = payload.readInteger(as: UInt64.self) else { return nil }
        let filler = UInt8(truncatingIfNeeded: number)
        // One call of libc: a loop over bytes takes a third of a busy test's time in a debug build.
        let isIntact = payload.withUnsafeReadableBytes { bytes in
            guard let first = bytes.first, let start = bytes.baseAddress else { return true }
            return first == filler && memcmp(start, start + 1, bytes.count - 1) == 0
        }
        return isIntact ? Int(number) : nil
    }

    private static func fill(_ header: [UInt8], _ number: Int, _ bytes: Int) -> [UInt8] {
        var out = ByteBuffer(bytes: header)
        out.writeInteger(UInt64(number))
        out.writeRepeatingByte(UInt8(truncatingIfNeeded: number), count: max(0, bytes - out.readableBytes))
        return Array(out.readableBytesView)
    }
}
