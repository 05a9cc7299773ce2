import Foundation
package import Media
import NIOCore

/// One FLV tag: what an RTMP media message carries.
package struct FLVTag: Hashable, Sendable, CustomStringConvertible {
    package var kind: Frame.Kind
    /// Milliseconds.
    package var timestamp: UInt32
    package var payload: [UInt8]

    package var description: String { "\(self.kind) \(self.timestamp) \(self.payload.count) bytes \(self.payload.prefix(12))" }

    package init(kind: Frame.Kind, timestamp: UInt32, payload: [UInt8]) {
        self.kind = kind
        self.timestamp = timestamp
        self.payload = payload
    }

    package static func video(_ timestamp: UInt32, _ payload: [UInt8]) -> FLVTag {
        FLVTag(kind: .video, timestamp: timestamp, payload: payload)
    }
    package static func audio(_ timestamp: UInt32, _ payload: [UInt8]) -> FLVTag {
        FLVTag(kind: .audio, timestamp: timestamp, payload: payload)
    }

    /// Filler that the server sends when a stream falls silent, to complete readers' blocks; players skip it.
    package var isFiller: Bool { self.kind == .video && self.payload.first == 0x57 }

    /// AVC or AAC configuration.
    package var isSequenceHeader: Bool {
        switch self.kind {
        case .video: self.payload.count > 1 && self.payload[0] & 0x0F == 7 && self.payload[1] == 0
        case .audio: self.payload.count > 1 && self.payload[0] >> 4 == 10 && self.payload[1] == 0
        case .data: false
        }
    }
}

/// FLV files as lists of tags (FLV §E.2-E.4).
package enum FLVFile {
    package static func read(_ path: String) throws -> [FLVTag] {
        var bytes = ByteBuffer(bytes: try Data(contentsOf: URL(fileURLWithPath: path)))
        // The header (9 bytes) and the first back pointer.
        bytes.moveReaderIndex(forwardBy: 13)
        var tags: [FLVTag] = []
        while let type = bytes.readInteger(as: UInt8.self), let size = Self.readUInt24(&bytes), let low = Self.readUInt24(&bytes),
            let high = bytes.readInteger(as: UInt8.self), Self.readUInt24(&bytes) != nil, let payload = bytes.readBytes(length: Int(size)),
            bytes.readInteger(as: UInt32.self) != nil
        {
            tags.append(FLVTag(kind: try Frame.Kind(rawValue: type).orThrow(), timestamp: UInt32(high) << 24 | low, payload: payload))
        }
        return tags
    }

    package static func write(_ tags: [FLVTag], to path: String) throws {
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

extension FLVTag {
    /// A file's headers and coded media. Leaves out script data, and the end of sequence, because more media may follow it in a test.
    package static func media(of file: String) throws -> [FLVTag] {
        try FLVFile.read(file).filter { tag in
            let flags = try Frame(kind: tag.kind, timestamp: 0, payload: ByteBuffer(bytes: tag.payload)).tag.flags
            return tag.kind != .data && !flags.contains(.endOfSequence)
        }
    }

    /// The same tag, `ms` later.
    package func later(by ms: UInt32) -> FLVTag { FLVTag(kind: self.kind, timestamp: self.timestamp &+ ms, payload: self.payload) }

    /// Four seconds with a keyframe each second.
    package static func clip(audio: Bool = true, rate: Int = 25) async throws -> [FLVTag] {
        try FLVFile.read(
            try await Fixture.flv(
                video: ["-c:v", "libx264", "-profile:v", "baseline", "-g", "\(rate)"], audio: audio ? Fixture.aac : nil, seconds: 4,
                rate: rate))
    }
}
