import Foundation
import Media
import NIOCore

/// One FLV tag: what an RTMP media message carries.
struct Tag: Hashable, Sendable, CustomStringConvertible {
    var kind: Frame.Kind
    /// Milliseconds.
    var timestamp: UInt32
    var payload: [UInt8]

    var description: String { "\(self.kind) \(self.timestamp) \(self.payload.count) bytes \(self.payload.prefix(12))" }

    static func video(_ timestamp: UInt32, _ payload: [UInt8]) -> Tag { Tag(kind: .video, timestamp: timestamp, payload: payload) }
    static func audio(_ timestamp: UInt32, _ payload: [UInt8]) -> Tag { Tag(kind: .audio, timestamp: timestamp, payload: payload) }

    /// Filler that the server sends when a stream falls silent, to complete readers' blocks; players skip it.
    var isFiller: Bool { self.kind == .video && self.payload.first == 0x57 }

    /// AVC or AAC configuration.
    var isSequenceHeader: Bool {
        switch self.kind {
        case .video: self.payload.count > 1 && self.payload[0] & 0x0F == 7 && self.payload[1] == 0
        case .audio: self.payload.count > 1 && self.payload[0] >> 4 == 10 && self.payload[1] == 0
        case .data: false
        }
    }
}

/// FLV files as lists of tags (FLV §E.2-E.4).
enum FLVFile {
    static func read(_ path: String) throws -> [Tag] {
        var bytes = ByteBuffer(bytes: try Data(contentsOf: URL(fileURLWithPath: path)))
        // The header (9 bytes) and the first back pointer.
        bytes.moveReaderIndex(forwardBy: 13)
        var tags: [Tag] = []
        while let type = bytes.readInteger(as: UInt8.self), let size = Self.readUInt24(&bytes), let low = Self.readUInt24(&bytes),
            let high = bytes.readInteger(as: UInt8.self), Self.readUInt24(&bytes) != nil, let payload = bytes.readBytes(length: Int(size)),
            bytes.readInteger(as: UInt32.self) != nil
        {
            tags.append(Tag(kind: try Frame.Kind(rawValue: type).orThrow(), timestamp: UInt32(high) << 24 | low, payload: payload))
        }
        return tags
    }

    static func write(_ tags: [Tag], to path: String) throws {
        var bytes = ByteBuffer(bytes: [0x46, 0x4C, 0x56, 1, 5, 0, 0, 0, 9, 0, 0, 0, 0])
        for tag in tags {
            bytes.writeInteger(tag.kind.rawValue)
            Self.writeUInt24(UInt32(tag.payload.count), &bytes)
            Self.writeUInt24(tag.timestamp & 0xFF_FFFF, &bytes)
            bytes.writeInteger(UInt8(tag.timestamp >> 24))
            Self.writeUInt24(0, &bytes)
            bytes.writeBytes(tag.payload)
            bytes.writeInteger(UInt32(tag.payload.count + 11))
        }
        try Data(bytes.readableBytesView).write(to: URL(fileURLWithPath: path))
    }

    private static func readUInt24(_ bytes: inout ByteBuffer) -> UInt32? {
        guard let high = bytes.readInteger(as: UInt8.self), let low = bytes.readInteger(as: UInt16.self) else { return nil }
        return UInt32(high) << 16 | UInt32(low)
    }

    private static func writeUInt24(_ value: UInt32, _ bytes: inout ByteBuffer) {
        bytes.writeInteger(UInt8(truncatingIfNeeded: value >> 16))
        bytes.writeInteger(UInt16(truncatingIfNeeded: value))
    }
}
